"""Upgrades: the newer releases that rid a subject of most failures, of the fewest packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from repros.advise.audit.assess import judge
from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model import Repro
from repros.model.ranges import Interval

_BEGUN = (AuditStatus.AFFECTED, AuditStatus.POSSIBLE)


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
        present = " or ".join(dict.fromkeys(constraint.raw for constraint in self.constraints)) or "(not listed)"
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
    lowest = _choose_releases(concerning)
    waiting = [one for one in concerning if _ends(one, lowest)]
    known = tuple(repros)
    upgraded: dict[str, Version] = {}
    begun = _concerning(known, subject)
    upgrades = []
    while waiting:
        added = _next_packages(waiting, lowest, upgraded)
        upgraded |= {package: lowest[package] for package in added}
        ended = [one for one in waiting if _ends(one, upgraded)]
        waiting = [one for one in waiting if one not in ended]
        brought = [id_ for id_ in _concerning(known, _with_releases(subject, upgraded)) if id_ not in begun]
        begun += brought
        releases = tuple(_new_release(subject, package, lowest[package]) for package in added)
        upgrades.append(Upgrade(releases, tuple(one.repro.id for one in ended), tuple(brought)))
    return tuple(upgrades)


def _choose_releases(reported: Iterable[Assessment]) -> dict[str, Version]:
    """Return the lowest of each package's releases with which most failures may end."""
    intervals: dict[str, list[tuple[str, Interval]]] = {}
    for one in reported:
        for releases in (releases for together in one.newer for releases in together):
            intervals.setdefault(releases.package, []).append((one.repro.id, releases.interval))
    chosen = {}
    for package, known in intervals.items():
        firsts = {_first_release(interval) for _, interval in known}
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
    return any(
        all(part.package in releases and releases[part.package] in part.interval for part in together)
        for together in one.newer
    )


def _next_packages(
    waiting: Sequence[Assessment], lowest: Mapping[str, Version], upgraded: Mapping[str, Version]
) -> tuple[str, ...]:
    """Return the fewest packages with whose new releases another failure ends; of equally many, the most effective."""
    groups = {
        tuple(part.package for part in together if part.package not in upgraded)
        for one in waiting
        for together in one.newer
        if all(lowest[part.package] in part.interval for part in together)
    }

    def effect(group: tuple[str, ...]) -> int:
        candidate = {**upgraded, **{package: lowest[package] for package in group}}
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
