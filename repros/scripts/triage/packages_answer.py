"""The answer to requirements, a lock or an environment: the short form of an audit."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.subject import Subject
from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.scripts.triage.kind import InputKind

_MOST_SHOWN = 6


def answer_packages(subject: Subject, assessments: Sequence[Assessment], kind: InputKind) -> Answer:
    """Return the failures that affect packages and that a newer release is without, and the number of the others.

    Args:
        subject: the packages.
        assessments: those of all failures.
        kind: the kind of input that the packages are from.
    """
    affected = [one for one in assessments if one.status is AuditStatus.AFFECTED]
    fixable = [one for one in affected if one.fixed]
    number = "1 documented failure" if len(fixable) == 1 else f"{len(fixable)} documented failures"
    verb = "affects" if len(fixable) == 1 else "affect"
    title = (
        f"{number} {verb} {subject.name}, and newer releases are without them"
        if fixable
        else (f"No documented failure of {subject.name} is gone in a newer release")
    )
    lines = tuple(f"{one.repro.id} {one.repro.title}: {one.fixed[0]}" for one in fixable[:_MOST_SHOWN])
    rest = Counter(one.status for one in assessments if one not in fixable)
    counts = ", ".join(f"{rest[status]} {status}" for status in AuditStatus if rest[status])
    option = "--python " if kind is InputKind.ENVIRONMENT else ""
    return Answer(
        kind,
        title,
        Certainty.CERTAIN,
        sections=(
            *([Section("found", lines, most_lines=2 * _MOST_SHOWN)] if lines else ()),
            Section("also", (f"{counts} of all other failures",), most_lines=1),
        ),
        next=(
            f"repros audit {option}{shlex.quote(subject.name)}",
            *(f"repros show {one.repro.id}" for one in fixable[:2]),
        ),
        notes=subject.unparsed[:1],
    )
