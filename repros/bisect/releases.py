"""What an index has of a project: its releases, when they came out, and which of them can be tried."""

from __future__ import annotations

import datetime as dt
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from repros.environments.pip_settings import uv_settings
from repros.environments.withdrawn import is_withdrawn
from repros.errors import ReprosError

_PYPI = "https://pypi.org/simple"
_SIMPLE = "application/vnd.pypi.simple.v1+json"
_PATIENCE = 60


class IndexFailedError(ReprosError):
    """An index that does not answer, or not in a form that tells when a release came out."""

    def __init__(self, project: str, index: str, why: str) -> None:
        """Compose the sentence."""
        way_out = "name another index with PIP_INDEX_URL or UV_DEFAULT_INDEX."
        super().__init__(f"{index} does not tell the releases of {project}: {why}; {way_out}")


@dataclass(frozen=True)
class Release:
    """One version of a project."""

    version: Version
    date: dt.date
    """When its first file was uploaded."""
    size: int | None = None
    """Bytes of the file that is installed, where the index says."""


@dataclass(frozen=True)
class File:
    """One file of a release, as the index describes it."""

    name: str
    uploaded: dt.date
    requires_python: str
    yanked: bool
    size: int | None = None


def read(project: str) -> list[File]:
    """Return all files of a project on the index that pip and uv are set up to use.

    Raises:
        IndexFailedError: it does not answer, does not have the project, or does not tell dates.
    """
    settings = {**os.environ, **uv_settings(os.environ)}
    index = (settings.get("UV_DEFAULT_INDEX") or settings.get("UV_INDEX_URL") or _PYPI).rstrip("/")
    trusted = ssl.create_default_context(cafile=settings.get("SSL_CERT_FILE"))
    name = canonicalize_name(project)
    try:
        simple = _get(f"{index}/{name}/", trusted)
        # Mirrors often have only pages for pip, without dates, and beside them PyPI's older JSON.
        found = simple or _get(f"{index.removesuffix('/simple')}/pypi/{name}/json", trusted)
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it is the answer too, with a socket that nobody else would close
        raise IndexFailedError(project, index, str(error)) from error
    if found is None:
        raise IndexFailedError(project, index, "it answers in HTML, which has no dates")
    return files(found)


def _get(url: str, trusted: ssl.SSLContext) -> Mapping[str, Any] | None:
    """Return the JSON at the address; None when what is there is none."""
    request = urllib.request.Request(url, headers={"Accept": f"{_SIMPLE}, text/html;q=0.1"})  # noqa: S310 - the user's own index
    with urllib.request.urlopen(request, timeout=_PATIENCE, context=trusted) as answer:  # noqa: S310 - see above
        if "json" not in answer.headers.get("Content-Type", ""):
            return None
        found = json.load(answer)
    return found if isinstance(found, Mapping) else None


def files(answer: Mapping[str, Any]) -> list[File]:
    """Return the files in an index's answer, in the simple API's form or in that of PyPI's older JSON."""
    if "files" in answer:
        return [_file(entry, "upload-time", "requires-python") for entry in answer["files"]]
    entries = (entry for release in answer["releases"].values() for entry in release)
    return [_file(entry, "upload_time_iso_8601", "requires_python") for entry in entries]


def _file(entry: Mapping[str, Any], uploaded: str, requires_python: str) -> File:
    date = dt.date.fromisoformat(str(entry[uploaded])[:10])
    # A yanked file may bear its reason instead of True, and that reason may be empty.
    yanked = entry.get("yanked", False) is not False
    return File(str(entry["filename"]), date, str(entry.get(requires_python) or ""), yanked, entry.get("size"))


def candidates(
    project: str,
    found: Iterable[File],
    python: str,
    within: Sequence[Requirement] = (),
    *,
    keep: Iterable[Version] = (),
) -> list[Release]:
    """Return the releases that can be tried, oldest first.

    Left out are pre-releases, yanked and withdrawn ones, those without a file for this Python, and those outside
    what the repro itself can run on.

    Args:
        project: its name.
        found: its files.
        python: version of the environment's Python, `3.11` or `3.11.7`.
        within: requirements; those on this project bound the releases.
        keep: versions that are wanted although they are pre-releases.
    """
    kept, tags = set(keep), _tags(python)
    bounds = [r.specifier for r in within if canonicalize_name(r.name) == canonicalize_name(project)]
    releases: dict[Version, Release] = {}
    for file in found:
        version = _version(file, tags)
        if (
            version is None
            or file.yanked
            or (version.is_prerelease and version not in kept)
            or is_withdrawn(project, version)
            or not _allows(file.requires_python, python)
            or not all(bound.contains(version, prereleases=True) for bound in bounds)
        ):
            continue
        known = releases.get(version, Release(version, file.uploaded))
        size = file.size if file.name.endswith(".whl") else known.size
        releases[version] = Release(version, min(known.date, file.uploaded), size)
    return [releases[version] for version in sorted(releases)]


def _version(file: File, tags: set[Tag]) -> Version | None:
    """Return the version of a file that fits; None for one that does not, or that has a name of its own making."""
    try:
        if not file.name.endswith(".whl"):
            return parse_sdist_filename(file.name)[1]
        _, version, _, wheel = parse_wheel_filename(file.name)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
    return version if wheel & tags else None


def _tags(python: str) -> set[Tag]:
    major, minor = map(int, python.split(".")[:2])
    return {*cpython_tags((major, minor)), *compatible_tags((major, minor), f"cp{major}{minor}")}


def _allows(requires_python: str, python: str) -> bool:
    try:
        return SpecifierSet(requires_python).contains(python)
    except InvalidSpecifier:  # `>=3.6.*` and the like, from before they were refused
        return True
