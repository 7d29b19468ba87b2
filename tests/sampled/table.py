"""The table of sampled public reports, and how many of them have an id."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.package_catalogue import load
from tests.sampled.first_sample import paragraph, read_first_sample

FILE = Path(__file__).with_name("reports.toml")
_RECENT = 2023


@dataclass(frozen=True)
class Report:
    """A public thread about a training program that failed."""

    url: str
    title: str
    year: int
    pool: str
    """Where it was looked for: lightning, hugging face, pytorch or downstream."""
    symptom: str
    kind: str
    """The class that the reader gave it before the catalogue was opened."""
    silent: bool
    cause_known: bool
    can_be_shown: bool
    """Whether a small program on a CPU, two Gloo ranks or simulated GPUs could show it at all."""
    means: str
    """By what, or what it would need."""
    id: str | None = None
    """The failure whose page would have solved it: the same cause, and a fix that helps."""
    near: str | None = None
    """A failure with the same symptom from another cause or call."""
    why: str = ""


def read_reports() -> tuple[Report, ...]:
    """Return the sampled reports, in the order in which they were drawn."""
    tables = tomllib.loads(FILE.read_text("utf-8"))["reports"]
    return tuple(Report(**{"kind" if key == "class" else key: value for key, value in one.items()}) for one in tables)


def body(reports: Sequence[Report], named: Collection[str]) -> str:
    """Return the sentences and the table; `named` are the threads that the catalogue's scripts name."""
    shown = [report for report in reports if report.can_be_shown]
    recent = [report for report in shown if report.year >= _RECENT]
    others = [report for report in shown if report.url not in named]
    sentences = (
        f"On 2026-11-26 a reader who had not opened the catalogue drew {len(reports)} public reports about training"
        f" programs that fail, by queries that name symptoms, and wrote down the class of each and whether a suite like"
        f" this one could show it at all, before comparing. {len(shown)} could be shown. {_covered(shown)} of those"
        f" have an id ({_covered(shown) / len(shown):.0%}): an entry with the same cause, whose fix helps the reporter."
        f" Of the {len(recent)} since {_RECENT} it is {_covered(recent)} ({_covered(recent) / len(recent):.0%})."
        f" Scripts name {len(shown) - len(others)} of these threads themselves; of the others {_covered(others)} of"
        f" {len(others)} have an id ({_covered(others) / len(others):.0%}). *Near* is an entry with the same symptom"
        " from another cause. The addresses, the rule by which they were drawn and the answers are in"
        " `tests/sampled/reports.toml`."
    )
    rows = ["| Class | reports | silent | could be shown | with an id | near |", "|---|--:|--:|--:|--:|--:|"]
    kinds = sorted({report.kind for report in reports}, key=lambda kind: (-_number(reports, kind), kind))
    rows += [_row(kind, [report for report in reports if report.kind == kind]) for kind in kinds]
    rows.append(_row("**all**", reports))
    return "\n".join([textwrap.fill(sentences, 120), "", *rows]) + "\n"


def _covered(reports: Sequence[Report]) -> int:
    return sum(report.id is not None for report in reports)


def _number(reports: Sequence[Report], kind: str) -> int:
    return sum(report.kind == kind for report in reports)


def _row(name: str, reports: Sequence[Report]) -> str:
    counts = (
        len(reports),
        sum(report.silent for report in reports),
        sum(report.can_be_shown for report in reports),
        _covered(reports),
        sum(report.near is not None for report in reports),
    )
    return f"| {name} | {' | '.join(map(str, counts))} |"


def table() -> str:
    """Return how many of the sampled reports have an id."""
    named = {url for repro in load() for url in repro.upstream.links}
    return f"{body(read_reports(), named)}\n{paragraph(read_first_sample())}"
