"""A repro as an OSV record (https://ossf.github.io/osv-schema, version 1.7), for tools that read advisories.

OSV says which releases of one package are affected. A failure that needs a range of one package *and* a range of
another is more than it can say: then the package that the failure is in is listed, and the rest is a note.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import Specifier
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.evidence import Evidence, measured_devices
from repros.model import Repro
from repros.model.requirements import format_requirement

SCHEMA = "1.7.3"

Event = dict[str, str]


def record(repro: Repro, evidence: Evidence) -> dict[str, Any]:
    """Return the record of a repro; its ranges are those of the variant `failing`."""
    failing = repro.variant("failing")
    ranges = failing.affected if failing else repro.affected
    packages = [canonicalize_name(package) for package in repro.packages]
    beside = [r for r in ranges if canonicalize_name(r.name) not in packages]
    affected, inexact = [], []
    for package in packages:
        events, left_over = _events([r for r in ranges if canonicalize_name(r.name) == package])
        inexact += [f"{package}{bound}" for bound in left_over]
        affected.append(_package(package, events))
    notes = list(_notes(packages, beside, inexact))
    return {
        "schema_version": SCHEMA,
        "id": f"x_{repro.id}",
        "modified": f"{_modified(repro, evidence).isoformat()}T00:00:00Z",
        "summary": repro.title,
        "details": "\n\n".join([repro.doc.strip(), *notes]),
        "affected": affected,
        "references": [{"type": _kind(url), "url": url} for url in repro.upstream],
        "database_specific": {
            "affected": [format_requirement(requirement) for requirement in ranges],
            "lossy": notes,
            "silent": repro.silent,
            "evidence": measured_devices(repro, evidence),
        },
    }


def _notes(packages: Sequence[str], beside: Sequence[Requirement], inexact: Sequence[str]) -> Iterable[str]:
    """Yield what the record cannot say, a sentence each."""
    if beside:
        others = ", ".join(map(format_requirement, beside))
        yield f"Note: affected only together with {others}, which OSV cannot express."
    if len(packages) > 1:
        yield f"Note: the failure needs {' and '.join(packages)} together; OSV lists each as if it were affected alone."
    if inexact:
        yield f"Note: OSV has no exact form of {', '.join(inexact)}; the events are the nearest that it has."


def _package(name: str, events: Sequence[Event]) -> dict[str, Any]:
    return {
        "package": {"ecosystem": "PyPI", "name": name, "purl": f"pkg:pypi/{name}"},
        "ranges": [{"type": "ECOSYSTEM", "events": list(events)}],
    }


def _events(ranges: Iterable[Requirement]) -> tuple[list[Event], list[str]]:
    """Return the events of a package's ranges, all of which hold, and the bounds that they do not say exactly.

    Of several lower bounds the highest counts, of several upper ones the lowest. `fixed` is a release that is not
    affected and `last_affected` one that is; OSV takes one of the two.
    """
    lows, highs, inexact = [Version("0")], list[tuple[Version, bool, Event]](), list[str]()
    for bound in (bound for requirement in ranges for bound in requirement.specifier):
        low, high, exact = _ends(bound)
        lows += [low] if low else []
        highs += [high] if high else []
        inexact += [] if exact else [str(bound)]
    introduced = max(lows)
    events: list[Event] = [{"introduced": "0" if introduced == Version("0") else str(introduced)}]
    if highs:
        events.append(min(highs, key=lambda high: high[:2])[2])
    return events, inexact


def _ends(bound: Specifier) -> tuple[Version | None, tuple[Version, bool, Event] | None, bool]:
    """Return a bound's lower end, its upper end, and whether they say it exactly.

    An upper end comes with whether its own version is affected, so that of two at one version the stricter is less.
    """
    operator, text = bound.operator, bound.version
    if operator == "!=":
        return None, None, False
    version = Version(text.removesuffix(".*"))
    before = (version, False, {"fixed": str(version)})
    upto = (version, True, {"last_affected": str(version)})
    if operator in {">=", ">"}:
        return version, None, operator == ">="
    if operator in {"<", "<="}:
        return None, before if operator == "<" else upto, True
    if operator == "~=" or text.endswith(".*"):
        kept = version.release[:-1] if operator == "~=" else version.release
        following = ".".join(map(str, (*kept[:-1], kept[-1] + 1)))
        return version, (Version(following), False, {"fixed": following}), True
    return version, upto, True


def _kind(url: str) -> str:
    """Return what a thread is: an issue reports, a pull request fixes as far as anybody can tell from its address."""
    return "REPORT" if "/issues/" in url else "FIX" if "/pull/" in url else "WEB"


def _modified(repro: Repro, evidence: Evidence) -> dt.date:
    """Return the day of the latest evidence; without any, the day on which the script was last written."""
    days = [one.date for unit, one in evidence.items() if unit.repro == repro.id]
    return max(days) if days else dt.datetime.fromtimestamp(repro.path.stat().st_mtime, tz=dt.UTC).date()
