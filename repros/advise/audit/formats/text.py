"""An audit report as text: the upgrades, a line or a paragraph for each reported failure, and counts of the others."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from repros.advise.audit.assessment import Aspect, Assessment, AuditStatus, Condition
from repros.advise.audit.formats import summary
from repros.advise.audit.formats.remedy import describe_workaround, fixed_in
from repros.advise.audit.report import AuditReport
from repros.text.layout import entry, heading, label_lines
from repros.text.styled import Text
from repros.text.wording import wrap

_entry = partial(entry, margin=12, indent=2)
_STYLES = {AuditStatus.AFFECTED: "bold red", AuditStatus.POSSIBLE: "bold yellow"}

Render = Callable[[Assessment, int], Iterator[Text]]


def render_text(report: AuditReport, *, width: int, verbose: bool = False, show_all: bool = False) -> Text:
    """Return the whole report.

    Args:
        report: the audit.
        width: columns.
        verbose: whether to show the reasons, workarounds and evidence of each failure.
        show_all: whether to list the failures that are only counted otherwise; with `verbose` the unaffected ones, too.
    """
    others = show_all and not report.is_foreign
    shown = [one for one in report.assessments if others or one in report.reported]
    lines = [*_summary_lines(report, width), Text()]
    lines += _concerning_lines(shown, width, _detail_lines if verbose else _brief_lines)
    lines += _unknown_lines(report, shown, width, verbose=verbose)
    if verbose:
        lines += _section("Not affected", [one for one in shown if one.status is AuditStatus.CLEAR], width)
    lines += _ended_lines(report, width)
    lines += _ignore_lines(report, width)
    lines += _other_lines(report, width, show_all=show_all)
    lines += [] if verbose else _hint_lines(shown)
    while not lines[-1].plain:
        lines.pop()
    return Text("\n").join(lines)


def _summary_lines(report: AuditReport, width: int) -> Iterator[Text]:
    """Yield what was found, and the upgrades that end it."""
    found = wrap(f"{report.subject.name}: {summary.summarise(report)}", width, hanging="  ")
    yield from (Text(line, "bold") for line in found)
    for upgrade in summary.describe_upgrades(report):
        yield from map(Text, wrap(upgrade, width, "  ", "    "))
    for problem in report.subject.unparsed:
        yield from map(Text, wrap(f"not parsed: {problem}", width, "  ", "    "))


def _concerning_lines(shown: Sequence[Assessment], width: int, render: Render) -> Iterator[Text]:
    """Yield the affected failures and then the possible ones, bugs first."""
    for status, style in _STYLES.items():
        for section in summary.SECTIONS:
            concerned = [one for one in shown if one.status is status and summary.section_of(one) == section]
            if concerned:
                note = (
                    "" if status is AuditStatus.AFFECTED else "; possible, depending on the release that is installed"
                )
                yield from (Text(line, style) for line in wrap(f"{section}{note} ({len(concerned)})", width))
                yield from (line for assessment in concerned for line in render(assessment, width))
                yield Text()


def _brief_lines(assessment: Assessment, width: int) -> Iterator[Text]:
    """Yield the title and the newer releases without the failure, on one line if the width allows it."""
    fix = f": fixed in {fixed_in(assessment)}" if assessment.fixed else ""
    yield from map(Text, wrap(f"{assessment.repro.id} {summary.title_of(assessment)}{fix}", width, "  ", " " * 11))


def _detail_lines(assessment: Assessment, width: int) -> Iterator[Text]:
    repro = assessment.repro
    yield Text()
    yield from heading(repro.id, summary.title_of(assessment), width)
    for number, condition in enumerate(assessment.conditions):
        yield from _entry("" if number else "because", str(condition), width)
    yield from _entry("fixed in", fixed_in(assessment), width)
    yield from _entry("unaffected", " or ".join(assessment.unaffected), width)
    for number, variant in enumerate(assessment.workarounds):
        yield from _entry("" if number else "workaround", describe_workaround(repro, variant), width)
    for variant in assessment.exceptions:
        yield from _entry("not with", f"{variant.name}: {variant.about}", width)
    yield from _entry("evidence", str(assessment.evidence), width)
    yield from label_lines("more", [_show(assessment)], margin=12, indent=2)  # not wrapped: it is pasted


def _unknown_lines(report: AuditReport, shown: Sequence[Assessment], width: int, *, verbose: bool) -> Iterator[Text]:
    """Yield the failures of unknown status, grouped by reason."""
    unknown = [one for one in shown if one.status is AuditStatus.UNKNOWN]
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
    if report.subject.unparsed or any(map(_lacks_fact, unknown)):
        hint = "to find out, audit the installed environment: repros audit --python PATH"
        yield from map(Text, wrap(hint, width, "  ", "    "))
    yield Text()


def _lacks_fact(assessment: Assessment) -> bool:
    """Return whether the subject lacks information, and not only a measurement is missing."""
    return any(condition.aspect is not Aspect.NEEDED for condition in assessment.conditions)


def _missing_fact(condition: Condition) -> str:
    """Return the unknown part of a condition; without its range, so that equal reasons share a line."""
    return str(condition) if condition.package else f"{condition.requirement.name} is not listed"


def _section(heading: str, assessments: Sequence[Assessment], width: int) -> Iterator[Text]:
    if not assessments:
        return
    yield Text(heading, "bold")
    for assessment in assessments:
        why = "; ".join(map(str, assessment.conditions))
        why += "".join(f"; but affected with {variant.name}: {variant.about}" for variant in assessment.exceptions)
        yield from map(Text, wrap(f"{assessment.repro.id}: {why}", width, "  ", "    "))
    yield Text()


def _ended_lines(report: AuditReport, width: int) -> Iterator[Text]:
    """Yield the failures that the base has, and the subject does not."""
    ended = report.base.ended if report.base else ()
    if ended:
        yield Text(f"Gone since {report.base.name if report.base else ''} ({len(ended)})", "bold green")
        for one in ended:
            yield from map(Text, wrap(f"{one.repro.id} {summary.title_of(one)}", width, "  ", " " * 11))
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


def _other_lines(report: AuditReport, width: int, *, show_all: bool) -> Iterator[Text]:
    """Yield the number of failures that are not reported, and the option that lists them."""
    for sentence in summary.describe_others(report, show_all=show_all):
        yield from map(Text, wrap(sentence, width, hanging="  "))


def _hint_lines(shown: Sequence[Assessment]) -> Iterator[Text]:
    """Yield the commands for more details, if there are any."""
    for assessment in [one for one in shown if one.status in _STYLES][:1]:
        yield Text("reasons, workarounds and evidence: --verbose", "dim")
        yield Text(f"one failure in full: {_show(assessment)}", "dim")  # not wrapped: it is pasted


def _show(assessment: Assessment) -> str:
    """Return the command that shows a failure in full."""
    return shlex.join(["repros", "show", assessment.repro.id, *assessment.repro.origin.words])
