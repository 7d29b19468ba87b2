"""A repro as an OSV record (https://ossf.github.io/osv-schema, version 1.7), for tools that read advisories.

The events of a package list exactly the versions in its ranges, with one exception: `fixed` names the release with the
fix, so its pre-releases count as affected, although PEP 440 excludes them from `<2.4` (and OSV's `0` is below all
versions). If a range starts or ends between releases, its events have versions that are not releases: the series 2.6
starts at `2.6.dev0`, and `<=2.3` ends at `2.3.post0.dev0`.

OSV lists the affected releases of single packages. It cannot express a failure that requires a range of one package
*and* a range of another, or one of several. Such a record lists the package of the failure, with every release that may
be affected, and a note states the other conditions.
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
    """Yield a sentence about unmeasured releases, which OSV cannot express."""
    exists = {condition.only.name: condition.only.specifier for condition in repro.exists if condition.only}
    for measured in map(Requirement, repro.measurable):
        there = exists.get(measured.name, SpecifierSet())
        if intersection([there, measured.specifier]) != there:  # some releases with the feature cannot run the script
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
            events.pop()  # there are only pre-releases in between
        else:
            events.append({"introduced": introduced})
        if interval.end is not None:
            release = _release_at(interval.end)
            # If only 2.1.dev0 is unaffected, `fixed: 2.1` would wrongly include 2.1.
            is_unaffected = following is None or release <= following.start
            events.append({"fixed": str(release if is_unaffected else interval.end)})
    return events


def _release_at(end: Version) -> Version:
    """Return the release whose first development release is this version, or else the version."""
    return Version(end.base_version) if end.dev == 0 and end.pre is None and end.post is None else end


def _references(repro: Repro) -> Iterator[dict[str, str]]:
    """Yield the upstream threads with OSV's types; OSV has no type for unreleased fixes and for manuals."""
    upstream = repro.upstream
    groups = {
        "REPORT": upstream.reports,
        "INTRODUCED": upstream.introduced_by,
        "FIX": (*upstream.fixed_by, *upstream.unreleased_fix),
        "WEB": (*upstream.related, *filter(None, [repro.documented, repro.exists_source])),
    }
    types: dict[str, str] = {}
    for type_, urls in groups.items():
        for url in urls:
            types.setdefault(url, type_)
    return ({"type": type_, "url": url} for url, type_ in types.items())


def _modification_date(repro: Repro, evidence: Evidence) -> dt.date:
    """Return the date of the latest evidence, or without evidence the date of the script's last change."""
    days = [measurement.date for unit, measurement in evidence.items() if unit.repro == repro.id]
    return max(days) if days else dt.datetime.fromtimestamp(repro.path.stat().st_mtime, tz=dt.UTC).date()
