"""The table of public reports that nobody here had seen, by the kind of the answer and a reader's judgement."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FIRST, AGAIN, THIRD, FOURTH, FIFTH = (
    Path(__file__).with_name(name)
    for name in ("unseen.toml", "unseen_again.toml", "unseen_third.toml", "unseen_fourth.toml", "unseen_fifth.toml")
)


@dataclass(frozen=True)
class Judged:
    """An answer of `repros triage`, as a reader judged it."""

    kind: str
    """`id`, `family`, `symptom`, `release`, `hypothesis` (a test of the reporter's cause), `stated` (it only repeats
    the report or asks for more), or `refused` (it knows neither a failure nor the message)."""
    right: str
    """`yes`, `no`, or `cannot tell`."""
    useful: bool
    decides: bool | None = None
    """Whether the useful part is an id, a check that runs as it is, or a release; None if not judged."""


@dataclass(frozen=True)
class UnseenReport:
    """A public report and the answers to it."""

    url: str
    library: str
    stratum: str
    shown: str
    """Whether two processes on a CPU or simulated GPUs could show it: `yes`, `partly`, `no`."""
    script: bool
    named: bool
    """Whether this repository cites the thread."""
    first: Judged
    second: Judged | None


def read_unseen(file: Path) -> tuple[UnseenReport, ...]:
    """Return the reports of a sample in the order in which they were drawn."""
    return tuple(
        UnseenReport(
            one["url"],
            one["library"],
            one["stratum"],
            one["shown"],
            one.get("script", False),
            one.get("named", False),
            Judged(**one["first"]),
            Judged(**one["second"]) if "second" in one else None,
        )
        for one in tomllib.loads(file.read_text("utf-8"))["reports"]
    )


def table() -> str:
    """Return how many of the reports of each sample had a useful answer."""
    again = _further_table(AGAIN, "With these and more families and symptoms", "with the reporters' own words")
    third = _further_table(
        THIRD, "With what a report's own words, numbers and pairs exclude or say", "with texts that the reader restated"
    )
    fourth = _further_table(
        FOURTH,
        "With conditions for each cause, and with what a report says of its settings and of its own guess",
        "with restated texts of which a half is cut",
    )
    fifth = _further_table(
        FIFTH,
        "With causes held against what was tried, and another result of the check for each",
        "with restated texts, most of them of language models and of reinforcement",
    )
    return f"{_first_table()}\n{again}\n{third}\n{fourth}\n{fifth}"


def _further_table(file: Path, reason: str, texts: str) -> str:
    reports = read_unseen(file)
    shown = [report for report in reports if report.shown != "no"]
    unknown = [report for report in shown if not report.named]
    decided = sum(bool(report.first.decides) for report in shown)
    useful = _useful_first(shown)
    sentences = (
        f"{reason}, {len(reports)} further reports were drawn and judged in the same way, {texts}. Of the"
        f" {len(shown)} that could be shown {useful} had a useful answer"
        f" ({useful / len(shown):.0%}), {decided} of them an id, a check or a release that decides; of the"
        f" {len(unknown)} that this repository does not cite {_useful_first(unknown)} were useful. No wrong answer was"
        f" certain. They are in `tests/sampled/{file.name}`."
    )
    rows = ["| Answer | reports | useful | right |", "|---|--:|--:|--:|"]
    for kind in (*sorted({report.first.kind for report in reports}), ""):
        judged = [report.first for report in reports if report.first.kind.startswith(kind)]
        right = sum(one.right == "yes" for one in judged)
        rows.append(f"| {kind or '**all**'} | {len(judged)} | {_useful(judged)} | {right} |")
    return "\n".join([textwrap.fill(sentences, 120), "", *rows]) + "\n"


def _first_table() -> str:
    reports = read_unseen(FIRST)
    shown = [report for report in reports if report.shown != "no"]
    unknown = [report for report in shown if not report.named]
    again = [report.second for report in shown if report.second]
    developed = (
        f" After symptoms in words and messages within sentences were read, another reader found by the same rule"
        f" {_useful(again)} of {len(again)} useful; that change was made with these reports in view, so it is no"
        " measurement of unseen ones."
        if again
        else ""
    )
    first, part = _useful_first(shown), _useful_first(shown) / len(shown)
    sentences = (
        f"On 2026-11-28 a reader who did not know this project drew {len(reports)} public reports of 2025 and 2026 by"
        " the words of their symptoms, and another judged what `repros triage` answered to their texts by a rule"
        f" written before. {len(shown)} could be shown on a CPU or simulated GPUs; of these {first} had a useful answer"
        f" ({part:.0%}), and of the {len(unknown)} that this repository does not cite {_useful_first(unknown)}. No"
        f" wrong answer was certain.{developed} The addresses, the rule and the judgements are in"
        " `tests/sampled/unseen.toml`."
    )
    rows = ["| Answer | at first | useful | right | after the change | useful then |", "|---|--:|--:|--:|--:|--:|"]
    kinds = sorted({judged.kind for report in reports for judged in (report.first, report.second) if judged})
    rows += [_row(kind, reports, kind) for kind in kinds]
    rows.append(_row("**all**", reports, ""))
    return "\n".join([textwrap.fill(sentences, 120), "", *rows]) + "\n"


def _row(name: str, reports: Sequence[UnseenReport], kind: str) -> str:
    first = [report.first for report in reports if report.first.kind.startswith(kind)]
    second = [report.second for report in reports if report.second and report.second.kind.startswith(kind)]
    right = sum(judged.right == "yes" for judged in first)
    return f"| {name} | {len(first)} | {_useful(first)} | {right} | {len(second)} | {_useful(second)} |"


def _useful(judged: Sequence[Judged]) -> int:
    return sum(one.useful for one in judged)


def _useful_first(reports: Sequence[UnseenReport]) -> int:
    return _useful([report.first for report in reports])
