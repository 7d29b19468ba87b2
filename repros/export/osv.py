"""A repro as an OSV record (https://ossf.github.io/osv-schema, version 1.7), for tools that read advisories.

OSV lists the affected releases of single packages. It cannot express a failure that needs a range of one package *and*
a range of another, or one of several: such a record lists the package that the failure is in, with every release that
may be affected, and describes the other range in a note.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.evidence import Evidence, measured_devices
from repros.model import Repro
from repros.model.affected import AnyOf
from repros.model.requirements import format_requirement, intersection
from repros.model.unmeasured import existence

SCHEMA = "1.7.3"
"""The version of OSV's schema."""

Event = dict[str, str]
"""One entry of OSV's `events`: `{"introduced": "2.1"}`, `{"fixed": "2.4"}` or `{"last_affected": "2.3.3"}`."""


@dataclass(frozen=True)
class UpperEnd:
    """The version at which a range ends."""

    version: Version
    included: bool
    """Whether the version itself is affected."""

    @property
    def event(self) -> Event:
        """The end as an event."""
        return {"last_affected" if self.included else "fixed": str(self.version)}


def osv_record(repro: Repro, evidence: Evidence) -> dict[str, Any]:
    """Return the record of a repro, with the ranges of its variant `failing`."""
    ranges = (*repro.failing.affected, *(known for known in existence(repro, repro.failing) if known.only))
    packages = [canonicalize_name(package) for package in repro.packages]
    own = [
        affected_range.only
        for affected_range in ranges
        if affected_range.only and canonicalize_name(affected_range.only.name) in packages
    ]
    others = [affected_range for affected_range in ranges if affected_range.only not in own]
    affected, inexact = [], []
    for package in packages:
        events, unexpressed = _range_events([r for r in own if canonicalize_name(r.name) == package])
        inexact += [f"{package}{bound}" for bound in unexpressed]
        affected.append(_package_entry(package, events))
    notes = [*_limitation_notes(packages, others, inexact), *_unmeasured_notes(repro)]
    return {
        "schema_version": SCHEMA,
        "id": f"x_{repro.id}",
        "modified": f"{_modification_date(repro, evidence).isoformat()}T00:00:00Z",
        "summary": repro.title,
        "details": "\n\n".join([repro.doc.strip(), *notes]),
        "affected": affected,
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


def _limitation_notes(packages: Sequence[str], others: Sequence[AnyOf], inexact: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each fact that the record cannot express."""
    if others:
        conditions = ", ".join(map(str, others))
        yield f"Note: affected only together with {conditions}, which OSV cannot express."
    if len(packages) > 1:
        yield f"Note: the failure needs {' and '.join(packages)} together; OSV lists each as if it were affected alone."
    if inexact:
        yield f"Note: OSV cannot express {', '.join(inexact)} exactly; the events are the nearest equivalent."


def _unmeasured_notes(repro: Repro) -> Iterator[str]:
    """Yield a sentence about the releases of which nothing is known, for which OSV has no word."""
    exists = {condition.only.name: condition.only.specifier for condition in repro.exists if condition.only}
    for measured in map(Requirement, repro.measurable):
        there = exists.get(measured.name, SpecifierSet())
        if intersection([there, measured.specifier]) != there:  # some that have what fails cannot run the script
            known = format_requirement(measured)
            yield f"Note: measured with {known} only; whether other releases of {measured.name} fail is unknown."


def _package_entry(name: str, events: Sequence[Event]) -> dict[str, Any]:
    return {
        "package": {"ecosystem": "PyPI", "name": name, "purl": f"pkg:pypi/{name}"},
        "ranges": [{"type": "ECOSYSTEM", "events": list(events)}],
    }


def _range_events(ranges: Iterable[Requirement]) -> tuple[list[Event], list[str]]:
    """Return the events for the intersection of a package's ranges, and the bounds that they do not express exactly.

    Of several lower bounds the highest counts, of several upper bounds the lowest. OSV allows one upper event: either
    `fixed`, the first unaffected release, or `last_affected`.
    """
    lows, highs, inexact = [Version("0")], list[UpperEnd](), list[str]()
    for bound in (bound for requirement in ranges for bound in requirement.specifier):
        low, high, exact = _bound_ends(bound)
        lows += [low] if low else []
        highs += [high] if high else []
        inexact += [] if exact else [str(bound)]
    introduced = max(lows)
    events: list[Event] = [{"introduced": "0" if introduced == Version("0") else str(introduced)}]
    if highs:
        # Of two ends at one version, the one that excludes it is the lower.
        events.append(min(highs, key=lambda high: (high.version, high.included)).event)
    return events, inexact


def _bound_ends(bound: Specifier) -> tuple[Version | None, UpperEnd | None, bool]:
    """Return a bound's lower end, its upper end, and whether they express it exactly."""
    operator, text = bound.operator, bound.version
    if operator == "!=":
        return None, None, False
    version = Version(text.removesuffix(".*"))
    if operator in {">=", ">"}:
        return version, None, operator == ">="
    if operator in {"<", "<="}:
        return None, UpperEnd(version, included=operator == "<="), True
    if operator == "~=" or text.endswith(".*"):
        series = version.release[:-1] if operator == "~=" else version.release
        next_series = Version(".".join(map(str, (*series[:-1], series[-1] + 1))))
        return version, UpperEnd(next_series, included=False), True
    return version, UpperEnd(version, included=True), True


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
