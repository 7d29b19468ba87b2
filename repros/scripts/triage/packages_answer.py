"""The answer to requirements, a lock or an environment: the short form of an audit."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from repros.advise.audit.assessment import AuditStatus
from repros.advise.audit.report import AuditReport
from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.scripts.triage.kind import InputKind

_MOST_UPGRADES = 3
_MOST_SHOWN = 4


def answer_packages(report: AuditReport, name: str, kind: InputKind) -> Answer:
    """Return the failures that affect packages and that a newer release does not have, and the number of the others.

    Args:
        report: the audit.
        name: the file or the environment, as the user gave it.
        kind: which of both it is.
    """
    found = report.reported
    shows = [f"repros show {one.repro.id}" for one in found[:2]]
    audit = f"repros audit {'--python ' if kind is InputKind.ENVIRONMENT else ''}{shlex.quote(name)}"
    sections = (
        *_upgrade_section(report),
        *([Section("found", _lines(report), most_lines=2 * _MOST_SHOWN)] if found else ()),
        *_others_section(report),
    )
    notes = report.subject.unparsed[:1]
    return Answer(kind, _title(report, name), Certainty.CERTAIN, sections=sections, next=(audit, *shows), notes=notes)


def _title(report: AuditReport, name: str) -> str:
    if report.is_foreign:
        return f"{name} lists no package that a documented failure is in"
    number = len(report.reported)
    if not number:
        return f"No documented failure of {name} ends with a newer release"
    failures = "1 documented failure" if number == 1 else f"{number} documented failures"
    return f"{name} has {failures} that newer releases do not have"


def _upgrade_section(report: AuditReport) -> Iterator[Section]:
    texts = tuple(
        f"{' with '.join(map(str, upgrade.releases))} ends {len(upgrade.ends)}{' more' if number else ' of them'}"
        for number, upgrade in enumerate(report.upgrades[:_MOST_UPGRADES])
    )
    if texts:
        yield Section("upgrade", texts, most_lines=_MOST_UPGRADES)


def _lines(report: AuditReport) -> tuple[str, ...]:
    return tuple(f"{one.repro.id} {one.repro.title}" for one in report.reported[:_MOST_SHOWN])


def _others_section(report: AuditReport) -> Iterator[Section]:
    """Yield the numbers of the failures that no newer release is without, and of those that do not count."""
    rest = Counter(one.status for one in report.assessments if one not in report.reported)
    texts = {
        AuditStatus.AFFECTED: "affect every newer release, too",
        AuditStatus.POSSIBLE: "depend on the installed release",
        AuditStatus.UNKNOWN: "are unknown",
        AuditStatus.CLEAR: "do not affect it",
    }
    counts = ", ".join(f"{rest[status]} {text}" for status, text in texts.items() if rest[status])
    if counts and not report.is_foreign:
        yield Section("also", (f"of the others, {counts}",), most_lines=2)
