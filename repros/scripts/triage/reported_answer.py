"""The answer to a report without a known error, symptom or release: its numbers, its comparison, or what it lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from repros.diagnose.issue.crash import Crash, Frame, last_frames
from repros.diagnose.issue.numbers import Finding
from repros.diagnose.issue.pair import Pair
from repros.diagnose.issue.proofs import ProofKind
from repros.diagnose.issue.symptoms import Symptom
from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.scripts.triage.pair_answer import pair_sections
from repros.scripts.triage.report import Report

_SIDE_BY_SIDE = (
    "both side by side, repros compare -- python works.py -- python fails.py: the first of batch, weight, output, loss "
    "and gradient that differs"
)
_NO_END = "the rest of the traceback, down to the exception's class and message"
_NO_TEXT = "the error's text: from the line `Traceback` down to the exception's class and message"
_ANY = "the error's text, if it ends in one; else the first step whose value is wrong, as printed and as expected"
_VALUES = "the value as printed and as expected, and the first step that has it"
_RESULT = re.compile(
    r"\b(?:loss\w*|gradients?|norms?|accuracy|scores?|metrics?|overfit\w*|converg\w*|reward\w*|slow\w*|speed|memory)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d[\d.]*\s?%|\b\d+\.\d+\b|\b0\b|\b\d+x\b|\bnan\b|\b(?:twice|doubled?)\b", re.IGNORECASE)
_STEP = re.compile(r"\b(?:step|epoch|iteration|batch) ?\d+\b|\bfirst (?:step|epoch|iteration|batch)\b", re.IGNORECASE)
_STATED = re.compile(
    r"\b(?:prints?|printed|shows?|logs|is|was|expect(?:ed)?|got|gives?|gave|should be|instead of)"
    r"\W{1,3}(?:about )?-?(?:\d+\.\d+(?![\d.]*\.\d)|nan\b)",
    re.IGNORECASE,
)
"""A value as printed or as expected, which is no release."""
_WORKED = re.compile(
    r"\b(?:used to (?:work|be)|(?:worked|was fine|it works) (?:\w+ ){0,3}(?:before|previously|earlier|in the past"
    r"|until|last "
    r"(?:week|month))|previously (?:it )?worked|(?:an?|the) (?:older|earlier|previous|newest|latest|new) (?:version"
    r"|release)"
    r"|if rollback|roll\w* ?back|after (?:the |an? )?(?:update|upgrade)|newest version)\b",
    re.IGNORECASE,
)
"""A report of a change of release that does not name both ends."""
_SHORT = 500
"""Characters of prose; more of it says what happens."""
_BOTH_RELEASES = "the release with which it works (pip list of both): repros bisect {script} finds the one between"


def answer_reported(answer: Answer, report: Report, before: tuple[Section, ...]) -> Answer:
    """Return the answer to a report of which no error, no symptom and no change of release is known.

    Args:
        answer: that to the errors in its text.
        report: the report.
        before: the sections that come first.
    """
    if decided := report.decided:
        lacks = missing_sections(report) if report.is_crash else ()
        sections = (*before, *finding_sections(decided), *lacks)
        return replace(answer, title=decided.title, certainty=Certainty.LIKELY, sections=sections)
    crash, pair = report.crash if report.is_crash else None, report.pair
    compared = tuple(pair_sections(pair, report.source)) if pair else tuple(contrast_sections(report))
    title = _compared_title(pair) if pair else "No known symptom"
    if crash:
        title = "It ends in an error whose text the report lacks"
    missing = tuple(missing_sections(report))
    computed, supposed = computed_section(report), hypothesis_sections(report)
    if report.hypothesis and not crash and not pair:
        title = "The report supposes a cause, which is to be proved"
        before = tuple(section for section in before if section.bodies != (report.hypothesis.sentence,))
    return replace(answer, title=title, sections=(*before, *computed, *supposed, *compared, *missing))


def _compared_title(pair: Pair) -> str:
    if pair.is_ordered:
        return f"It works {pair.works}, and fails {pair.fails}"
    return f"Two runs differ: {pair.sentence}"


def finding_sections(finding: Finding) -> Iterator[Section]:
    """Yield what numbers say, and what to print to find the reason."""
    yield Section("because", (finding.text,), most_lines=4)
    if finding.check:
        yield Section("check", (finding.check,), most_lines=4, is_whole=True)


def computed_section(report: Report) -> Iterator[Section]:
    """Yield what follows from the settings of a report."""
    if report.computed:
        yield Section("computed", (report.computed,), most_lines=3)


def hypothesis_sections(report: Report) -> Iterator[Section]:
    """Yield what the report itself takes for the cause, and what would prove it."""
    if hypothesis := report.hypothesis:
        yield Section("supposed", (hypothesis.sentence,), most_lines=3)
        if hypothesis.proof is ProofKind.VALUE and report.symptom and report.symptom.symptom.ends_early:
            return
        yield Section("check", (hypothesis.check,), most_lines=4, is_whole=True)
        if hypothesis.release:
            yield Section("check", (hypothesis.release,), most_lines=2, is_whole=True)


def is_better_supposed(report: Report, symptom: Symptom) -> bool:
    """Return whether the report's own words for the cause say more than those of its symptom.

    A program that hangs or has no memory reaches no value that could be printed.
    """
    hypothesis = report.hypothesis
    return bool(hypothesis and symptom.is_general and not (symptom.ends_early and hypothesis.proof is ProofKind.VALUE))


def contrast_sections(report: Report) -> Iterator[Section]:
    """Yield what the report itself compared, where one run fails and another does not, and how to go on from there."""
    if report.pair:
        yield from pair_sections(report.pair, report.source)
    elif contrast := report.contrast:
        yield Section("apart", (contrast,), most_lines=3)
        is_result = _RESULT.search(f"{report.issue.title}\n{report.issue.seen}")
        if is_result and not report.crash and not report.issue.failures:  # numbers place no exception
            yield Section("check", (_SIDE_BY_SIDE,), most_lines=2, is_whole=True)


def _reached_sections(crash: Crash) -> Iterator[Section]:
    """Yield the last call of a traceback without its end, what is done there, and what to look at."""
    if crash.frame:
        yield Section("where", (f"the traceback is cut at {_place(crash.frame, crash.caller)}",), most_lines=3)
    elif crash.told:
        yield Section("where", (f"the last call that can be read is {crash.told}",), most_lines=2)
    if known := crash.known:
        yield Section("says", (known.says,), most_lines=2)
        yield Section("check", (known.check,), most_lines=4, is_whole=True)


def raised_sections(report: Report) -> Iterator[Section]:
    """Yield the frame of a library that raised an error which nothing explains."""
    frame, caller = last_frames(report.issue, report.text)
    if frame and frame.package:
        yield Section("where", (f"raised in {_place(frame, caller)}",), most_lines=3)


def _place(frame: Frame, caller: Frame | None) -> str:
    owner = f" (of {frame.package})" if frame.package else ""
    return f"{frame}{owner}{f', called by {caller}' if caller else ''}"


def missing_sections(report: Report) -> Iterator[Section]:
    """Yield the last place of a report without its error, and what it lacks; nothing that it has."""
    issue, crash = report.issue, report.crash if report.is_crash else None
    text = f"{issue.title}\n{issue.seen}"
    if crash:
        yield from _reached_sections(crash)
        lacks = _NO_END if crash.frame or crash.told else _NO_TEXT
        picture = "; pictures are not read" if crash.is_picture and not crash.frame else ""
        yield Section("missing", (f"{lacks}{picture}",), most_lines=2)
    elif _WORKED.search(text):
        yield Section("missing", (_BOTH_RELEASES.format(script=report.conditions.script or "train.py"),), most_lines=2)
    elif not report.pair and not report.hypothesis:
        is_without = _RESULT.search(text) and not _NUMBER.search(text) and len(issue.seen) < _SHORT
        if is_without or not (_STEP.search(text) and _STATED.search(text)):
            yield Section("missing", (_VALUES if is_without else _ANY,), most_lines=2)
