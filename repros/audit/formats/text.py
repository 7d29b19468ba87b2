"""An audit report as text for a console."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

from repros.audit.assessment import Aspect, Assessment, Condition, Status
from repros.audit.report import AuditReport
from repros.model import Repro, Variant
from repros.text.layout import entry, heading, label_lines
from repros.text.styled import Text
from repros.text.threads import kind_note
from repros.text.wording import count, own_requirements, wrap

_entry = partial(entry, margin=12, indent=2)
_STYLES = {Status.AFFECTED: "bold red", Status.POSSIBLE: "bold yellow"}


def render_text(report: AuditReport, *, width: int, verbose: bool = False) -> Text:
    """Return the whole report.

    Args:
        report: the audit.
        width: columns.
        verbose: whether unaffected and unknown failures are listed one by one.
    """
    lines = [
        line
        for status in _STYLES
        for assessment in report.with_status(status)
        for line in _assessment_lines(assessment, width)
    ]
    lines += _unknown_lines(report, width, verbose=verbose)
    if verbose:
        lines += _section("Not affected", report.with_status(Status.CLEAR), width)
    lines += _ignore_lines(report, width)
    return Text("\n").join([*lines, _summary(report, width)])


def _assessment_lines(assessment: Assessment, width: int) -> Iterator[Text]:
    repro = assessment.repro
    silent = f"{' (silent)' if repro.silent else ''}{kind_note(repro)}"
    possible = "" if assessment.status is Status.AFFECTED else ": possible, depending on the release that is installed"
    yield from heading(repro.id, f"{repro.title}{silent}{possible}", width, style=_STYLES[assessment.status])
    for number, condition in enumerate(assessment.conditions):
        yield from _entry("" if number else "because", str(condition), width)
    yield from _entry("fixed in", ", ".join(assessment.fixed) or "no release yet", width)
    if assessment.unaffected:
        yield from _entry("unaffected", ", ".join(assessment.unaffected), width)
    for number, variant in enumerate(assessment.workarounds):
        yield from _entry("" if number else "workaround", describe_workaround(repro, variant), width)
    for variant in assessment.exceptions:
        yield from _entry("not with", f"{variant.name}: {variant.about}", width)
    yield from _entry("evidence", str(assessment.evidence), width)
    command = shlex.join(["repros", "show", repro.id, *repro.origin.words])
    yield from label_lines("more", [command], margin=12, indent=2)  # not wrapped: it is pasted
    yield Text()


def describe_workaround(repro: Repro, variant: Variant) -> str:
    """Return a workaround on one line: its name, what it does, its own requirements, its source."""
    own = own_requirements(repro, variant)
    needs = f" (needs {', '.join(own)})" if own else ""
    source = f" {variant.source}" if variant.source else ""
    return f"{variant.name}: {variant.about}{needs}{source}"


def _unknown_lines(report: AuditReport, width: int, *, verbose: bool) -> Iterator[Text]:
    """Yield the failures of unknown status, grouped by reason, so that an empty list does not mislead."""
    unknown = report.with_status(Status.UNKNOWN)
    if not unknown:
        return
    if verbose:
        yield from _section("Unknown", unknown, width)
    else:
        by_reason: dict[str, list[str]] = {}
        for assessment in unknown:
            reason = "; ".join(dict.fromkeys(map(_missing_fact, assessment.conditions)))
            by_reason.setdefault(reason, []).append(assessment.repro.id)
        yield Text("Unknown", "bold")
        for reason, ids in by_reason.items():
            yield from map(Text, wrap(f"{reason}: {', '.join(ids)}", width, "  ", "    "))
    for problem in report.subject.unparsed:
        yield from map(Text, wrap(f"not understood: {problem}", width, "  ", "    "))
    if report.subject.unparsed or any(map(_lacks_fact, unknown)):
        hint = "audit the installed environment to know: repros audit --python PATH"
        yield from map(Text, wrap(hint, width, "  ", "    "))
    yield Text()


def _lacks_fact(assessment: Assessment) -> bool:
    """Return whether the subject leaves something unsaid, so that not only a measurement is missing."""
    return any(condition.aspect is not Aspect.NEEDED for condition in assessment.conditions)


def _missing_fact(condition: Condition) -> str:
    """Return what is unknown in a condition; without its range, so that equal reasons share a line."""
    return str(condition) if condition.package else f"{condition.requirement.name} is not listed"


def _section(heading: str, assessments: list[Assessment], width: int) -> Iterator[Text]:
    if not assessments:
        return
    yield Text(heading, "bold")
    for assessment in assessments:
        why = "; ".join(map(str, assessment.conditions))
        why += "".join(
            f"; affected all the same with {variant.name}: {variant.about}" for variant in assessment.exceptions
        )
        yield from map(Text, wrap(f"{assessment.repro.id}: {why}", width, "  ", "    "))
    yield Text()


def _ignore_lines(report: AuditReport, width: int) -> Iterator[Text]:
    lines = [(f"ignored {ignore.id} until {ignore.until}: {ignore.reason}", "dim") for _, ignore in report.ignored]
    lines += [
        (f"expired ignore {ignore.id}: ended on {ignore.until} ({ignore.reason}); renew it, or upgrade", "yellow")
        for ignore in report.expired
    ]
    lines += [(f"unused ignore {ignore.id}: not affected", "dim") for ignore in report.unused]
    for text, style in lines:
        yield from (Text(line, style) for line in wrap(text, width, hanging="  "))
    if lines:
        yield Text()


def _summary(report: AuditReport, width: int) -> Text:
    fixed = sum(bool(assessment.fixed) for assessment in report.with_status(Status.AFFECTED))
    names = {
        Status.AFFECTED: f"affected ({fixed} fixed in a newer release)" if fixed else "affected",
        Status.POSSIBLE: "possible",
        Status.UNKNOWN: "unknown",
        Status.CLEAR: "not affected",
    }
    counts = [f"{len(report.with_status(status))} {name}" for status, name in names.items()]
    counts += [f"{len(report.ignored)} ignored"] if report.ignored else []
    total = count(len(report.assessments) + len(report.ignored), "documented failure")
    lines = wrap(f"{report.subject.name}: {total}: {', '.join(counts)}", width, hanging="  ")
    return Text("\n").join(map(Text, lines))
