"""The overlap of two version ranges: the releases that a constraint allows, and the releases that are affected."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from repros.model.affected import Overlap


@cache
def compare_ranges(allowed: SpecifierSet, affected: SpecifierSet) -> Overlap:
    """Return how many of the releases in `allowed` lie in `affected`.

    Which versions were really released is unknown here, so the answer is about all possible final releases and the
    versions that the ranges name.
    """
    candidates = [version for version in representative_versions(allowed, affected) if _contains(allowed, version)]
    if not candidates:
        return Overlap.UNKNOWN
    inside = {_contains(affected, version) for version in candidates}
    if len(inside) > 1:
        return Overlap.SOME
    return Overlap.ALL if True in inside else Overlap.NONE


def representative_versions(*ranges: SpecifierSet) -> list[Version]:
    """Return enough versions to know how the ranges treat every final release.

    A range changes only at its boundaries. So one version on each boundary and one just above it, which stands for the
    gap up to the next boundary, are enough. Zero is always a boundary, because no release lies below it.
    """
    specifiers = [specifier for conjunction in ranges for specifier in conjunction]
    boundaries = {(0,), *(boundary for specifier in specifiers for boundary in _boundaries(specifier))}
    longest = max(map(len, boundaries))
    # Next above 2.4 is 2.4.1 where the longest boundary has two parts, and 2.4.0.1 where it has three.
    just_above = {(*boundary, *(0,) * (longest - len(boundary)), 1) for boundary in boundaries}
    releases = {Version(".".join(map(str, release))) for release in boundaries | just_above}
    return sorted(releases | {version for specifier in specifiers if (version := _parse_version(specifier))})


def _boundaries(specifier: Specifier) -> Iterator[tuple[int, ...]]:
    """Yield the releases at which a specifier may change: its version, and the end of each of that version's series.

    `~=2.4.1` ends at 2.5 and `==2.4.*` does, too.
    """
    if version := _parse_version(specifier):
        release = version.release
        yield release
        for length in range(1, len(release) + 1):
            yield (*release[: length - 1], release[length - 1] + 1)


def _parse_version(specifier: Specifier) -> Version | None:
    """Return the version that a specifier names; None for a text that is not a version, which `===` allows."""
    try:
        return Version(specifier.version.removesuffix(".*"))
    except InvalidVersion:
        return None


def _contains(releases: SpecifierSet, version: Version) -> bool:
    return releases.contains(version, prereleases=True)
