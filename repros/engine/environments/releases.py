"""Releases of a project on a package index, with their dates, and the installable ones among them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from repros.engine.environments.compile import is_withdrawn
from repros.engine.environments.index import ReleaseFile, fetch, index_settings, version_of
from repros.model.errors import ReprosError

_PYPI = "https://pypi.org/simple"
_SIMPLE_API = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True)
class PackageRelease:
    """One version of a project."""

    version: Version
    date: dt.date
    """Upload date of its first file."""
    size: int | None = None
    """Bytes of the wheel; None if the index does not give it."""


def fetch_files(project: str) -> list[ReleaseFile]:
    """Return all files of a project on the index that pip or uv is configured to use.

    Raises:
        ReprosError: the index does not answer, does not have the project, or gives no dates.
    """
    settings = index_settings()
    index = (settings.get("UV_DEFAULT_INDEX") or settings.get("UV_INDEX_URL") or _PYPI).rstrip("/")
    name = canonicalize_name(project)
    try:
        # Many mirrors have only HTML for pip, without dates, and in addition PyPI's older JSON.
        response = _fetch_json(f"{index}/{name}/") or _fetch_json(f"{index.removesuffix('/simple')}/pypi/{name}/json")
    except OSError as error:
        raise _index_error(project, index, str(error)) from error
    if response is None:
        raise _index_error(project, index, "it answers in HTML, which has no dates")
    return parse_files(response)


def _index_error(project: str, index: str, why: str) -> ReprosError:
    remedy = "name another index with PIP_INDEX_URL or UV_DEFAULT_INDEX."
    return ReprosError(f"{index} does not list the releases of {project} with their dates: {why}; {remedy}")


def _fetch_json(address: str) -> Mapping[str, Any] | None:
    """Return the JSON object at an address; None if it is not one."""
    page = fetch(address, accept=f"{_SIMPLE_API}, text/html;q=0.1")
    content = json.loads(page.body) if "json" in page.content_type else None
    return content if isinstance(content, Mapping) else None


def parse_files(response: Mapping[str, Any]) -> list[ReleaseFile]:
    """Return the files in a response of an index, in the format of the simple API or of PyPI's older JSON."""
    if "files" in response:
        return [_parse_file(entry, "upload-time", "requires-python") for entry in response["files"]]
    entries = (entry for release in response["releases"].values() for entry in release)
    return [_parse_file(entry, "upload_time_iso_8601", "requires_python") for entry in entries]


def _parse_file(entry: Mapping[str, Any], uploaded: str, requires_python: str) -> ReleaseFile:
    date = dt.date.fromisoformat(str(entry[uploaded])[:10])
    # Instead of True, a yanked file may have its reason, a string that may be empty.
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
    """Return the installable releases of a project, oldest first.

    Excluded are pre-releases, yanked and withdrawn releases, releases without a file for this Python, and releases
    outside the requirements.

    Args:
        project: the name of the project.
        files: its files on the index.
        python: version of the environment's Python, `3.11` or `3.11.7`.
        requirements: those on this project bound the releases; others are ignored.
        keep: versions to include even if they are pre-releases.
    """
    kept_versions, tags = set(keep), _wheel_tags(python)
    bounds = [r.specifier for r in requirements if canonicalize_name(r.name) == canonicalize_name(project)]
    releases: dict[Version, PackageRelease] = {}
    for file in files:
        version = _matching_version(file, tags)
        if (
            version is None
            or file.yanked
            or (version.is_prerelease and version not in kept_versions)
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
    version = version_of(file.name)
    if version is not None and file.name.endswith(".whl") and not parse_wheel_filename(file.name)[3] & tags:
        return None
    return version


def _wheel_tags(python: str) -> set[Tag]:
    major, minor = map(int, python.split(".")[:2])
    return {*cpython_tags((major, minor)), *compatible_tags((major, minor), f"cp{major}{minor}")}


def _allows_python(requires_python: str, python: str) -> bool:
    try:
        return SpecifierSet(requires_python).contains(python)
    except InvalidSpecifier:  # such as `>=3.6.*` of old releases, which packaging refuses
        return True
