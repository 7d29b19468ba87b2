"""A repro as an OSV record (https://ossf.github.io/osv-schema, version 1.7), for tools that read advisories.

The events of a package list exactly the versions in its ranges, with one exception: `fixed` names the release with the
fix, so its pre-releases count as affected, which PEP 440 leaves out of `<2.4` (and OSV's `0` is below all versions). A
range that begins or ends beside a release has events that no release has: the series 2.6 begins at `2.6.dev0`, and
`<=2.3` ends at `2.3.post0.dev0`.

OSV lists the affected releases of single packages. It cannot express a failure that needs a range of one package *and*
a range of another, or one of several: such a record lists the package that the failure is in, with every release that
may be affected, and a note says what else they need.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.engine.evidence import Evidence, measured_devices
from repros.model import Repro
from repros.model.affected import AnyOf, packages_of
from repros.model.packages import format_requirement, intersection
from repros.model.ranges import FIRST, Interval, affected_intervals, alternatives_of, unaffected_releases
from repros.model.unmeasured import existence

SCHEMA = "1.7.3"
"""The version of OSV's schema."""

Event = dict[str, str]
"""One entry of OSV's `events`: `{"introduced": "2.1"}` or `{"fixed": "2.4"}`."""


def osv_record(repro: Repro, evidence: Evidence) -> dict[str, Any]:
    """Return the record of a repro, with the ranges of its variant `failing`."""
    conditions = (*repro.failing.affected, *existence(repro, repro.failing))
    packages = [str(canonicalize_name(package)) for package in repro.packages]
    notes = [*_limitation_notes(packages, conditions), *_unmeasured_notes(repro)]
    return {
        "schema_version": SCHEMA,
        "id": f"x_{repro.id}",
        "modified": f"{_modification_date(repro, evidence).isoformat()}T00:00:00Z",
        "summary": repro.title,
        "details": "\n\n".join([repro.doc.strip(), *notes]),
        "affected": [_package_entry(package, affected_intervals(conditions, package)) for package in packages],
        "references": list(_references(repro)),
        "database_specific": {
            "affected": list(map(str, repro.failing.affected)),
            "exists": list(map(str, repro.exists)),
            "measured": list(repro.measurable),
            "lossy": notes,
            "kind": repro.kind.value,
            "documented": repro.documented,
            "unreleased_fix": list(repro.upstream.unreleased_fix),
            "silent": repro.silent,
            "evidence": measured_devices(repro, evidence),
        },
    }


def _limitation_notes(packages: Sequence[str], conditions: Iterable[AnyOf]) -> Iterator[str]:
    """Yield a sentence for each fact that the record cannot express."""
    for condition in conditions:
        named = packages_of([condition])
        own = [package for package in named if package in packages]
        if not own:
            yield f"Note: affected only together with {condition}, which OSV cannot express."
        for package in own if len(named) > 1 else ():
            others = AnyOf(tuple(term for term in condition.terms if term.package != package))
            dependent = unaffected_releases([alternatives_of(condition, package)])
            names = " or ".join(str(releases) for (releases,) in dependent)
            yield f"Note: {names} is affected only with {others}, which OSV cannot express."
    if len(packages) > 1:
        yield f"Note: the failure needs {' and '.join(packages)} together; OSV lists each as if it were affected alone."


def _unmeasured_notes(repro: Repro) -> Iterator[str]:
    """Yield a sentence about the releases of which nothing is known, for which OSV has no word."""
    exists = {condition.only.name: condition.only.specifier for condition in repro.exists if condition.only}
    for measured in map(Requirement, repro.measurable):
        there = exists.get(measured.name, SpecifierSet())
        if intersection([there, measured.specifier]) != there:  # some that have what fails cannot run the script
            known = format_requirement(measured)
            yield f"Note: measured with {known} only; whether other releases of {measured.name} fail is unknown."


def _package_entry(name: str, affected: Sequence[Interval]) -> dict[str, Any]:
    events = _events(affected)
    return {
        "package": {"ecosystem": "PyPI", "name": name, "purl": f"pkg:pypi/{name}"},
        "ranges": [{"type": "ECOSYSTEM", "events": events}] if events else [],
    }


def _events(affected: Sequence[Interval]) -> list[Event]:
    """Return the events of a package's affected intervals, as the evaluation in OSV's specification reads them."""
    events: list[Event] = []
    for interval, following in zip_longest(affected, affected[1:]):
        introduced = "0" if interval.start == FIRST else str(interval.start)
        if events and events[-1].get("fixed") == introduced:
            events.pop()  # nothing but pre-releases lies between
        else:
            events.append({"introduced": introduced})
        if interval.end is not None:
            release = _release_at(interval.end)
            # Where only 2.1.dev0 is free, 2.1 is affected again: `fixed: 2.1` would free it.
            is_free = following is None or release <= following.start
            events.append({"fixed": str(release if is_free else interval.end)})
    return events


def _release_at(end: Version) -> Version:
    """Return the release whose development releases begin at a version, or the version itself if none does."""
    return Version(end.base_version) if end.dev == 0 and end.pre is None and end.post is None else end


def _references(repro: Repro) -> Iterator[dict[str, str]]:
    """Yield the upstream threads with OSV's types; OSV has none for a fix that is in no release, nor for manuals."""
    upstream = repro.upstream
    groups = {
        "REPORT": upstream.reports,
        "INTRODUCED": upstream.introduced_by,
        "FIX": (*upstream.fixed_by, *upstream.unreleased_fix),
        "WEB": (*upstream.related, *filter(None, [repro.documented, repro.exists_source])),
    }
    seen: set[str] = set()
    for type_, urls in groups.items():
        for url in urls:
            if url not in seen:
                yield {"type": type_, "url": url}
            seen.add(url)


def _modification_date(repro: Repro, evidence: Evidence) -> dt.date:
    """Return the day of the latest evidence, or without evidence the day on which the script was last written."""
    days = [measurement.date for unit, measurement in evidence.items() if unit.repro == repro.id]
    return max(days) if days else dt.datetime.fromtimestamp(repro.path.stat().st_mtime, tz=dt.UTC).date()
