"""Findings for the terminal."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from repros.diagnose.messages import Explanation
from repros.diagnose.messages.text import describe_meaning
from repros.diagnose.watch.coverage import Coverage
from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import Identified
from repros.diagnose.watch.names import fix_of
from repros.diagnose.watch.report import Report
from repros.model import Repro, Role
from repros.text.layout import paragraph_lines
from repros.text.wording import count, wrap

_LABEL = 10
_LONGEST_MESSAGE = 300
_INDENT = " " * 8
_MOST_NAMED = 3


def format_finding(finding: Finding, ids: Sequence[Identified], width: int) -> str:
    """Return a finding in at most `width` columns; only names and paths may be longer."""
    where = [f"rank {finding.rank}" if finding.rank is not None else "", f"step {finding.step}" if finding.step else ""]
    lines = wrap(f"repros: {finding.text}", width, hanging=_INDENT)
    lines += _entry("check", ", ".join(filter(None, [finding.check, *where])), width)
    for name, value in finding.numbers.items():
        if isinstance(value, Mapping):
            lines += _entry(
                "seen", f"{name}: " + ", ".join(f"{who} has {_number(n)}" for who, n in value.items()), width
            )
    if finding.place:
        lines += _entry("at", finding.place, width)
    fix = "" if ids else fix_of(finding.check)
    if fix:
        lines += _entry("works", fix, width)
        lines += _entry("next", f"repros watch --explain {finding.check}", width)
    for place, identified in enumerate(ids):
        lines += _entry(
            identified.repro.id, f"{identified.confidence.value} ({identified.why}): {identified.repro.title}", width
        )
        if place == 0:
            lines += _fixes(identified.repro, width)
    return "\n".join(lines)


def format_summary(report: Report, command: Sequence[str] = (), width: int = 120) -> Iterator[str]:
    """Yield the last lines: errors of the watch, and the findings, or what was inspected and found healthy.

    Args:
        report: the finished report.
        command: the program and its arguments, for the command that is proposed next.
        width: columns; only names and paths may be longer.
    """
    if report.too_old:
        yield f"repros: {count(len(report.too_old), 'process')} ran unwatched: Python is older than 3.9 there"
    elif not report.processes:
        yield "repros: no process of the command loaded the watch (python -I, -E or -S, or no Python at all)"
    if not report.processes:
        return
    where = count(len(report.processes), "process")
    if report.failures:
        failure = report.failures[0]
        yield f"repros: the watch itself failed in {failure['where']} ({failure['error']}); please report it"
    if report.lost:
        which = count(len(report.lost), "process")
        yield f"repros: {which} could not write all events (is the disk full?); set TMPDIR to a folder with room"
    if report.unknown is not None:
        yield f"repros: {report.unknown.name} is no documented failure"
    names = [ids[0].repro.id if ids else finding.check for finding, ids in report.found]
    if names:
        yield f"repros: {count(len(names), 'finding')} in {where}: {', '.join(dict.fromkeys(names))}"
    elif not report.coverage.has_torch:
        text = f"repros: nothing was watched: no torch was imported in {where}"
        yield from wrap(f"{text}{_without_torch(report)}", width, hanging=_INDENT)
    else:
        yield from _nothing_found(report, command, width)


def _without_torch(report: Report) -> str:
    """Return why torch may not have been imported, as the end of a sentence."""
    if report.unknown is not None and report.unknown.name == "ModuleNotFoundError":
        return "; name the interpreter that has it by --python PATH"
    return ""


def _nothing_found(report: Report, command: Sequence[str], width: int) -> Iterator[str]:
    coverage = report.coverage
    seen = _steps(coverage) or f"no step of an optimizer in {count(len(report.processes), 'process')}"
    yield from wrap(f"repros: no finding: {seen}; {_checks(coverage)}", width, hanging=_INDENT)
    if not coverage.ranks:
        return
    yield from _entry("unseen", "what labels, masks and metrics mean: only a comparison of two runs shows that", width)
    if command:
        yield from _entry("next", _next_command(command, coverage.ranks), width)


def _steps(coverage: Coverage) -> str:
    """Return the steps, such as `60 steps of AdamW in 2 ranks, 7 inspected in full`; "" for none."""
    if not coverage.steps:
        return ""
    where = f" in {count(coverage.ranks, 'rank')}" if coverage.ranks > 1 else ""
    names = " and ".join(coverage.optimizers[:_MOST_NAMED])
    return f"{count(coverage.steps, 'step')} of {names}{where}, {coverage.inspected} inspected in full"


def _checks(coverage: Coverage) -> str:
    """Return the checks, such as `96 checks, 4 more do not apply (no GradScaler)`."""
    applying, missing = coverage.checks()
    without = f", {sum(missing.values())} more do not apply (no {', '.join(missing)})" if missing else ""
    return f"{count(applying, 'check')}{without}"


def _next_command(command: Sequence[str], ranks: int) -> str:
    """Return the comparison that shows what no check sees: with one rank, or with a second run of the same command."""
    script = next((place for place, word in enumerate(command) if word.endswith(".py")), None)
    if ranks > 1 and script is not None:
        return f"repros compare --ranks 1,{ranks} -- python {shlex.join(command[script:])}"
    return f"repros compare -- {shlex.join(command)}"


def format_crash(explanation: Explanation | None, width: int) -> Iterator[str]:
    """Yield what the words of the exception say that ended the program, unless it is a documented failure."""
    if explanation is None:
        return
    raised = explanation.link.raised
    message = textwrap.shorten(raised.message, _LONGEST_MESSAGE)
    ranks = f" in {', '.join(explanation.failure.writers)}" if explanation.failure.writers else ""
    yield from wrap(f"repros: the program ended{ranks} with {raised.name}: {message}", width, hanging=_INDENT)
    lines = paragraph_lines(describe_meaning(explanation), width, indent=len(_INDENT))
    yield from (line.plain for line in lines)


def _fixes(repro: Repro, width: int) -> Iterator[str]:
    for variant in repro.variants:
        if variant.role is Role.WORKS:
            yield from _entry("works", f"{variant.name}: {variant.about}", width)
    yield from _entry("next", f"repros show {repro.id}", width)


def _entry(label: str, body: str, width: int) -> list[str]:
    left = " " * (len(_INDENT) + _LABEL)
    lines = wrap(body, width, left)
    return [
        f"{_INDENT}{label:<{_LABEL}}{line[len(left) :]}" if number == 0 else line for number, line in enumerate(lines)
    ]


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
