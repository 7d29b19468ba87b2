"""Upgrades: the newer releases that rid a subject of most failures, of the fewest packages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from repros.advise.audit.assess import judge
from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model import Repro
from repros.model.ranges import Interval, Releases

_BEGUN = (AuditStatus.AFFECTED, AuditStatus.POSSIBLE)
_MOST_PRESENT = 8
"""Present releases of one package that an upgrade names."""


@dataclass(frozen=True)
class NewRelease:
    """A release of one package to upgrade to."""

    package: str
    """The distribution in the subject, or the package's own name if the subject does not list it."""
    constraints: tuple[Constraint, ...]
    """The present ones; empty if the subject does not list the package."""
    lowest: Version
    """The lowest release that suffices."""

    def __str__(self) -> str:
        """Return `lightning 2.4.0 -> 2.6.1`."""
        raws = [*dict.fromkeys(constraint.raw for constraint in self.constraints)]
        more = [f"{len(raws) - _MOST_PRESENT} more"] if len(raws) > _MOST_PRESENT else []
        present = " or ".join([*raws[:_MOST_PRESENT], *more]) or "(not listed)"
        return f"{self.package} {present} -> {Interval(self.lowest, None).bounds.removeprefix('>=')}"


@dataclass(frozen=True)
class Upgrade:
    """New releases that belong together, and the failures that end and begin with them."""

    releases: tuple[NewRelease, ...]
    """Several packages only if no release of one alone ends another failure."""
    ends: tuple[str, ...]
    """Ids of the failures that end with them, after the upgrades before."""
    begins: tuple[str, ...]
    """Ids of the failures that all upgrades up to this one bring, and those before it do not."""


def find_upgrades(subject: Subject, reported: Sequence[Assessment], repros: Iterable[Repro]) -> tuple[Upgrade, ...]:
    """Return the upgrades by which most reported failures end, the most effective first.

    A package has one new release: the lowest of those with which most failures end. A further package is upgraded only
    if another failure ends with it.

    Args:
        subject: the audited packages.
        reported: its failures.
        repros: all failures, some of which may begin with the new releases.
    """
    concerning = [one for one in reported if one.status in _BEGUN]
    pins = {package: _pins(subject, package) for package in _packages(concerning)}
    present = {package: min(own) for package, own in pins.items() if len(own) == 1 and not min(own).is_prerelease}
    lowest = _choose_releases(concerning, pins)
    waiting = [one for one in concerning if _ends(one, {**present, **lowest}) and not _ends(one, present)]
    known = tuple(repros)
    upgraded: dict[str, Version] = {}
    begun = _concerning(known, subject)
    upgrades = []
    while waiting:
        added = _next_packages(waiting, lowest, {**present, **upgraded})
        upgraded |= {package: lowest[package] for package in added}
        ended = [one for one in waiting if _ends(one, {**present, **upgraded})]
        waiting = [one for one in waiting if one not in ended]
        brought = [id_ for id_ in _concerning(known, _with_releases(subject, upgraded)) if id_ not in begun]
        begun += brought
        releases = tuple(_new_release(subject, package, lowest[package]) for package in added)
        upgrades.append(Upgrade(releases, tuple(one.repro.id for one in ended), tuple(brought)))
    return tuple(upgrades)


def _packages(reported: Iterable[Assessment]) -> set[str]:
    return {releases.package for one in reported for together in one.newer for releases in together}


def _pins(subject: Subject, package: str) -> set[Version]:
    return {one.version for one in subject.constraints_on(package) if one.version is not None}


def _choose_releases(reported: Iterable[Assessment], pins: Mapping[str, Collection[Version]]) -> dict[str, Version]:
    """Return the lowest of each package's releases, above its present pins, with which most failures may end."""
    intervals: dict[str, list[tuple[str, Interval]]] = {}
    for one in reported:
        for releases in (releases for together in one.newer for releases in together):
            intervals.setdefault(releases.package, []).append((one.repro.id, releases.interval))
    chosen = {}
    for package, known in intervals.items():
        firsts = {max([_first_release(interval), *pins[package]]) for _, interval in known}
        ends = {release: {id_ for id_, interval in known if release in interval} for release in firsts}
        chosen[package] = min(ends, key=lambda version: (-len(ends[version]), version))
    return chosen


def _first_release(interval: Interval) -> Version:
    """Return the lowest version of an interval that a release has: of `>=2.6`, 2.6 and not 2.6.dev0."""
    start = interval.start
    is_before_release = start.dev == 0 and start.pre is None and start.post is None
    return Version(start.base_version) if is_before_release else start


def _ends(one: Assessment, releases: Mapping[str, Version]) -> bool:
    """Return whether a failure is known to be absent from releases of some packages, whatever the others are."""
    return any(all(_has(releases, part) for part in together) for together in one.newer)


def _has(releases: Mapping[str, Version], part: Releases) -> bool:
    return part.package in releases and releases[part.package] in part.interval


def _next_packages(
    waiting: Sequence[Assessment], lowest: Mapping[str, Version], known: Mapping[str, Version]
) -> tuple[str, ...]:
    """Return the fewest packages with whose new releases another failure ends; of equally many, the most effective.

    Args:
        waiting: the failures.
        lowest: the new release of each package.
        known: the releases that are present or upgraded to.
    """
    groups = {
        tuple(part.package for part in together if not _has(known, part))
        for one in waiting
        for together in one.newer
        if all(_has(lowest, part) for part in together)
    }

    def effect(group: tuple[str, ...]) -> int:
        candidate = {**known, **{package: lowest[package] for package in group}}
        return sum(_ends(one, candidate) for one in waiting)

    return min(groups, key=lambda group: (len(group), -effect(group), group))


def _new_release(subject: Subject, package: str, lowest: Version) -> NewRelease:
    return NewRelease(subject.find_name(package) or package, subject.constraints_on(package), lowest)


def _concerning(repros: Iterable[Repro], subject: Subject) -> list[str]:
    return [repro.id for repro in repros if judge(repro, subject)[0] in _BEGUN]


def _with_releases(subject: Subject, releases: Mapping[str, Version]) -> Subject:
    """Return the subject with one release of each of these packages."""
    constraints = dict(subject.constraints)
    for package, version in releases.items():
        pin = (Constraint(str(version), Location(subject.name), version),)
        constraints |= dict.fromkeys(subject.find_names(package) or (package,), pin)
    return replace(subject, constraints=constraints)
