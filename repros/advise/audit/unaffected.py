"""The releases without a failure, relative to the subject: releases to upgrade to, and older ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.advise.audit.subject import Subject
from repros.model.affected import AnyOf
from repros.model.ranges import FIRST, Interval, Releases, intervals, unaffected_releases


class Unaffected(NamedTuple):
    """Releases without a failure. Each entry alone suffices; it may combine releases of several packages."""

    newer: tuple[str, ...]
    """Above the lowest affected release that the subject allows, the nearest first: `lightning>=2.5.3`."""
    older: tuple[str, ...]
    """Older releases: `lightning>=2.0.8,<2.1`."""


def find_unaffected(affected: Iterable[AnyOf], possible: Iterable[AnyOf], subject: Subject) -> Unaffected:
    """Return the releases that are known to be unaffected, newer and older than the subject's.

    Args:
        affected: the conditions under which releases have the failure.
        possible: the conditions under which releases may have it, which include `affected`.
        subject: the subject.
    """
    unaffected = unaffected_releases(possible)
    free: dict[str, list[Interval]] = {releases.package: [] for together in unaffected for releases in together}
    for releases in (releases for together in unaffected_releases(affected) for releases in together):
        free.setdefault(releases.package, []).append(releases.interval)
    lowest = {package: _lowest_affected(package, known, subject) for package, known in free.items()}
    newer: list[str] = []
    older: list[str] = []
    for together in unaffected:
        is_older = any(_ends_below(releases, lowest[releases.package]) for releases in together)
        (older if is_older else newer).append(" with ".join(map(str, together)))
    return Unaffected(tuple(newer), tuple(older))


def _ends_below(releases: Releases, version: Version) -> bool:
    return releases.interval.end is not None and releases.interval.end <= version


def _lowest_affected(package: str, free: Sequence[Interval], subject: Subject) -> Version:
    """Return the lowest affected version of a package that the subject allows, or else the lowest allowed version.

    All versions of an unlisted package are allowed.
    """
    constraints = subject.constraints_on(package)
    pins = {constraint.version for constraint in constraints if constraint.version is not None}
    ranges = {constraint.releases or SpecifierSet() for constraint in constraints if constraint.version is None}
    if not constraints:
        ranges = {SpecifierSet()}
    allowed = [interval for releases in ranges for interval in _intervals(releases)]
    starts = [*pins, *(interval.start for interval in allowed)]
    # The lowest affected version is the start of an allowed interval or the end of an unaffected one.
    ends = [end for end in (interval.end for interval in free) if end and any(end in interval for interval in allowed)]
    affected = [version for version in (*starts, *ends) if not any(version in interval for interval in free)]
    return min(affected, default=min(starts, default=FIRST))


@cache
def _intervals(releases: SpecifierSet) -> tuple[Interval, ...]:
    return intervals(partial(releases.contains, prereleases=True), [releases])
