"""The named reports of the first sample, and what they say of the catalogue: a sentence or two for `docs/demand.md`."""

from __future__ import annotations

import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("first_sample.toml")


@dataclass(frozen=True)
class NamedReport:
    """A thread of the first sample whose address was kept."""

    url: str
    group: str
    """What it has in common with its neighbours."""
    why: str
    read: str
    """What was read of the thread: "excerpt" or "no"."""
    id: str | None = None
    """The failure whose page would have solved it: the same cause, and a fix that helps."""
    near: str | None = None
    """A failure with the same symptom from another cause or call, or from one that the excerpt does not say."""


@dataclass(frozen=True)
class FirstSample:
    """How much was drawn when the catalogue was young, and what was kept of it."""

    drawn: int
    failures: int
    """How many the catalogue had when they were drawn."""
    can_be_shown: int
    """Of those that were drawn, how many a small program could show."""
    had_an_id: int
    """Of those that can be shown, how many had an id when they were drawn; which, was not kept."""
    reports: tuple[NamedReport, ...]


def read_first_sample() -> FirstSample:
    """Return the first sample, its reports in the order of their groups."""
    tables = tomllib.loads(FILE.read_text("utf-8"))
    return FirstSample(**{**tables, "reports": tuple(NamedReport(**report) for report in tables["reports"])})


def paragraph(sample: FirstSample) -> str:
    """Return how many of its reports have an id, as lines; of those that were not kept none counts."""
    covered = sum(report.id is not None for report in sample.reports)
    unread = sum(report.read == "no" for report in sample.reports)
    sentences = (
        f"A first sample of {sample.drawn} reports was drawn when the catalogue had {sample.failures} failures."
        f" {sample.can_be_shown} could be shown, and {sample.had_an_id} of those had an id. The addresses of"
        f" {len(sample.reports)} were kept, as what people meet and the catalogue lacked. {covered} of these have an id"
        f" today ({covered / len(sample.reports):.0%}). With the {sample.had_an_id} that is at least"
        f" {_share(covered + sample.had_an_id, sample)}, and {_share(covered, sample)} even if the {sample.had_an_id}"
        " should be among those kept. It is a lower bound: a report whose address was not kept counts as one without an"
        " id. The judge knew the catalogue, unlike the reader of the sample above, and read excerpts;"
        f" {unread} threads were not found, and have an id only where a script names them. The answers are in"
        " `tests/sampled/first_sample.toml`."
    )
    return textwrap.fill(sentences, 120) + "\n"


def _share(number: int, sample: FirstSample) -> str:
    return f"{number} of {sample.can_be_shown} ({number / sample.can_be_shown:.0%})"
