"""Releases of a project on a package index: their dates, and which of them can be tried."""

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

from repros.engine.environments.compile import is_withdrawn
from repros.engine.environments.pip_settings import uv_settings
from repros.model.errors import ReprosError

_PYPI = "https://pypi.org/simple"
_SIMPLE_API = "application/vnd.pypi.simple.v1+json"
_TIMEOUT = 60
"""Seconds."""


@dataclass(frozen=True)
class PackageRelease:
    """One version of a project."""

    version: Version
    date: dt.date
    """The day on which its first file was uploaded."""
    size: int | None = None
    """Bytes of the file that is installed; None if the index does not give it."""


@dataclass(frozen=True)
class ReleaseFile:
    """One file of a release, as the index describes it."""

    name: str
    uploaded: dt.date
    requires_python: str
    yanked: bool
    size: int | None = None


def fetch_files(project: str) -> list[ReleaseFile]:
    """Return all files of a project on the index that pip and uv are configured to use.

    Raises:
        ReprosError: the index does not answer, does not have the project, or gives no dates.
    """
    settings = {**os.environ, **uv_settings(os.environ)}
    index = (settings.get("UV_DEFAULT_INDEX") or settings.get("UV_INDEX_URL") or _PYPI).rstrip("/")
    tls = ssl.create_default_context(cafile=settings.get("SSL_CERT_FILE"))
    name = canonicalize_name(project)
    try:
        simple = _fetch_json(f"{index}/{name}/", tls)
        # Many mirrors have only HTML for pip, without dates, and next to it PyPI's older JSON.
        found = simple or _fetch_json(f"{index.removesuffix('/simple')}/pypi/{name}/json", tls)
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it is also the response, with an open socket
        raise _index_error(project, index, str(error)) from error
    if found is None:
        raise _index_error(project, index, "it answers in HTML, which has no dates")
    return parse_files(found)


def _index_error(project: str, index: str, why: str) -> ReprosError:
    way_out = "name another index with PIP_INDEX_URL or UV_DEFAULT_INDEX."
    return ReprosError(f"{index} does not list the releases of {project} with their dates: {why}; {way_out}")


def _fetch_json(url: str, tls: ssl.SSLContext) -> Mapping[str, Any] | None:
    """Return the JSON object at an address; None if it has another form."""
    request = urllib.request.Request(url, headers={"Accept": f"{_SIMPLE_API}, text/html;q=0.1"})  # noqa: S310 - the user's own index
    with urllib.request.urlopen(request, timeout=_TIMEOUT, context=tls) as response:  # noqa: S310 - see above
        if "json" not in response.headers.get("Content-Type", ""):
            return None
        found = json.load(response)
    return found if isinstance(found, Mapping) else None


def parse_files(response: Mapping[str, Any]) -> list[ReleaseFile]:
    """Return the files in an index's response, which has the form of the simple API or of PyPI's older JSON."""
    if "files" in response:
        return [_parse_file(entry, "upload-time", "requires-python") for entry in response["files"]]
    entries = (entry for release in response["releases"].values() for entry in release)
    return [_parse_file(entry, "upload_time_iso_8601", "requires_python") for entry in entries]


def _parse_file(entry: Mapping[str, Any], uploaded: str, requires_python: str) -> ReleaseFile:
    date = dt.date.fromisoformat(str(entry[uploaded])[:10])
    # A yanked file may have its reason instead of True, and that reason may be empty.
    yanked = entry.get("yanked", False) is not False
    return ReleaseFile(str(entry["filename"]), date, str(entry.get(requires_python) or ""), yanked, entry.get("size"))


def candidate_releases(
    project: str,
    files: Iterable[ReleaseFile],
    python: str,
    requirements: Sequence[Requirement] = (),
    *,
    keep: Iterable[Version] = (),
) -> list[PackageRelease]:
    """Return the releases that can be tried, oldest first.

    These exclude pre-releases, yanked and withdrawn releases, releases without a file for this Python, and releases on
    which the repro cannot run.

    Args:
        project: its name.
        files: its files.
        python: version of the environment's Python, `3.11` or `3.11.7`.
        requirements: those of the repro; the ones on this project bound the releases.
        keep: versions to include even if they are pre-releases.
    """
    kept, tags = set(keep), _wheel_tags(python)
    bounds = [r.specifier for r in requirements if canonicalize_name(r.name) == canonicalize_name(project)]
    releases: dict[Version, PackageRelease] = {}
    for file in files:
        version = _matching_version(file, tags)
        if (
            version is None
            or file.yanked
            or (version.is_prerelease and version not in kept)
            or is_withdrawn(project, version)
            or not _allows_python(file.requires_python, python)
            or not all(bound.contains(version, prereleases=True) for bound in bounds)
        ):
            continue
        known = releases.get(version, PackageRelease(version, file.uploaded))
        size = file.size if file.name.endswith(".whl") else known.size
        releases[version] = PackageRelease(version, min(known.date, file.uploaded), size)
    return [releases[version] for version in sorted(releases)]


def _matching_version(file: ReleaseFile, tags: set[Tag]) -> Version | None:
    """Return the version of a file; None for a wheel of another platform, or for a name that follows no standard."""
    try:
        if not file.name.endswith(".whl"):
            return parse_sdist_filename(file.name)[1]
        _, version, _, wheel = parse_wheel_filename(file.name)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
    return version if wheel & tags else None


def _wheel_tags(python: str) -> set[Tag]:
    major, minor = map(int, python.split(".")[:2])
    return {*cpython_tags((major, minor)), *compatible_tags((major, minor), f"cp{major}{minor}")}


def _allows_python(requires_python: str, python: str) -> bool:
    try:
        return SpecifierSet(requires_python).contains(python)
    except InvalidSpecifier:  # such as `>=3.6.*`, from before packaging refused it
        return True
