"""The releases without a failure, as the subject sees them: those to upgrade to, and older ones."""

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
    """Releases without a failure; each entry suffices alone, and may need releases of several packages together."""

    newer: tuple[str, ...]
    """Above the lowest affected release that the subject allows, the nearest first: `lightning>=2.5.3`."""
    older: tuple[str, ...]
    """Those that need a package to be older than that: `lightning>=2.0.8,<2.1`."""


def find_unaffected(affected: Iterable[AnyOf], possible: Iterable[AnyOf], subject: Subject) -> Unaffected:
    """Return the releases that are known to be free of a failure, by whether they lie above the subject's.

    Args:
        affected: the conditions under which releases have the failure.
        possible: those under which they may have it, as far as is known; they hold wherever `affected` holds.
        subject: whose releases are compared.
    """
    found = unaffected_releases(possible)
    free: dict[str, list[Interval]] = {releases.package: [] for together in found for releases in together}
    for releases in (releases for together in unaffected_releases(affected) for releases in together):
        free.setdefault(releases.package, []).append(releases.interval)
    lowest = {package: _lowest_affected(package, known, subject) for package, known in free.items()}
    newer: list[str] = []
    older: list[str] = []
    for together in found:
        is_older = any(_ends_below(releases, lowest[releases.package]) for releases in together)
        (older if is_older else newer).append(" with ".join(map(str, together)))
    return Unaffected(tuple(newer), tuple(older))


def _ends_below(releases: Releases, version: Version) -> bool:
    return releases.interval.end is not None and releases.interval.end <= version


def _lowest_affected(package: str, free: Sequence[Interval], subject: Subject) -> Version:
    """Return the lowest version of a package that the subject allows and that is not free of the failure.

    If there is none, the lowest that it allows; of a package that it does not list, it allows all.
    """
    constraints = subject.constraints_on(package)
    pins = {constraint.version for constraint in constraints if constraint.version is not None}
    ranges = {constraint.releases or SpecifierSet() for constraint in constraints if constraint.version is None}
    if not constraints:
        ranges = {SpecifierSet()}
    allowed = [interval for releases in ranges for interval in _intervals(releases)]
    starts = [*pins, *(interval.start for interval in allowed)]
    # The lowest allowed version outside the free ones is where an allowed interval begins, or where a free one ends.
    ends = [end for end in (interval.end for interval in free) if end and any(end in interval for interval in allowed)]
    outside = [place for place in (*starts, *ends) if not any(place in interval for interval in free)]
    return min(outside, default=min(starts, default=FIRST))


@cache
def _intervals(releases: SpecifierSet) -> tuple[Interval, ...]:
    return intervals(partial(releases.contains, prereleases=True), [releases])
