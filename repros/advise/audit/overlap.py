"""The overlap of two version ranges: the releases that a constraint allows, and the releases that are affected."""

from __future__ import annotations

from functools import cache

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.model.affected import Overlap
from repros.model.ranges import sample


@cache
def compare_ranges(allowed: SpecifierSet, affected: SpecifierSet) -> Overlap:
    """Return the overlap of the releases in `allowed` with `affected`.

    The published versions are unknown here, so the result is about all possible releases and the ranges' own versions.
    """
    candidates = [version for version in sample(allowed, affected) if _contains(allowed, version)]
    if not candidates:
        return Overlap.UNKNOWN
    inside = {_contains(affected, version) for version in candidates}
    if len(inside) > 1:
        return Overlap.SOME
    return Overlap.ALL if True in inside else Overlap.NONE


def _contains(releases: SpecifierSet, version: Version) -> bool:
    return releases.contains(version, prereleases=True)
