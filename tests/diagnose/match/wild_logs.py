"""The wild logs: machine output from public threads, with the failure that each thread turned out to be about.

Nobody who wrote the matcher made them, so they measure it; the golden logs only guard against regressions. They are
split by repository: the matcher may be developed on one half, the other half is only counted.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from repros.diagnose.match import Candidate, Confidence, SignatureIndex, match_log
from repros.diagnose.match.log import decode_lines
from repros.model import Repro

FOLDER = Path(__file__).with_name("wild")
SECOND_READER = Path(__file__).with_name("wild_second_reader.toml")
"""The answer of a second reader to some of the logs, by name: an id, or `none`."""
NOTES = Path(__file__).with_name("wild_notes.toml")
"""Searches for failures without a log, and the reasons for what remains wrong."""
SEARCHES = Path(__file__).with_name("wild_searches")
"""Further searches: a file for each failure, so that branches with a new one each can be merged."""


class Kind(StrEnum):
    """What a log measures."""

    POSITIVE = "positive"
    """Shows a documented failure."""
    CONFUSABLE = "confusable"
    """Has the message of a documented failure, or a similar one, from another cause."""
    OTHER = "other"
    """Shows another error of a training program."""


@dataclass(frozen=True)
class WildLog:
    """One pasted log."""

    name: str
    source: str
    """Address of the thread."""
    repository: str
    kind: Kind
    expected: tuple[str, ...]
    """Ids of the repros that it shows; empty if it is not positive."""
    why: str
    """How the truth was decided."""
    text: str

    @property
    def is_counted(self) -> bool:
        """Whether it belongs to the half that is only counted."""
        return hashlib.sha256(self.repository.lower().encode()).digest()[0] % 2 == 0


@cache
def read_wild_logs() -> tuple[WildLog, ...]:
    """Return all wild logs."""
    found = []
    for file in sorted(FOLDER.glob("*.toml")):
        for entry in tomllib.loads(file.read_text("utf-8"))["log"]:
            kind, expected = Kind(entry.pop("kind")), tuple(entry.pop("expected"))
            found.append(WildLog(**entry, kind=kind, expected=expected))
    return tuple(found)


@dataclass(frozen=True)
class Figures:
    """How the matcher does on some wild logs; each is a count out of a number of logs."""

    anywhere: tuple[int, int]
    """Positives with the right id among the candidates."""
    on_top: tuple[int, int]
    """Positives with the right id as the first candidate."""
    confusable_confident: tuple[int, int]
    """Confusable logs with a certain or likely candidate."""
    other_answered: tuple[int, int]
    """Other logs with any candidate."""
    certain_right: tuple[int, int]
    """Certain candidates that are right."""
    likely_right: tuple[int, int]
    """Likely candidates that are right."""

    def __str__(self) -> str:
        """Return one line for people."""
        answers = (
            f"right id anywhere {_share(self.anywhere)}, on top {_share(self.on_top)}; a confident answer to "
            f"{_share(self.confusable_confident)} of the confusable and any answer to {_share(self.other_answered)} of"
        )
        right = f"of certain answers {_share(self.certain_right)} right, of likely {_share(self.likely_right)}"
        return f"{answers} the other logs; {right}"


def measure(logs: Iterable[WildLog], repros: Iterable[Repro]) -> Figures:
    """Return the figures of the matcher on these logs."""
    found = _answers(tuple(repros))
    answers = [(log, found[log.name]) for log in logs]
    positives = [(log, found) for log, found in answers if log.kind is Kind.POSITIVE]
    confusable = [found for log, found in answers if log.kind is Kind.CONFUSABLE]
    others = [found for log, found in answers if log.kind is Kind.OTHER]
    return Figures(
        anywhere=_count(any(failure.repro.id in log.expected for failure in found) for log, found in positives),
        on_top=_count(bool(found) and found[0].repro.id in log.expected for log, found in positives),
        confusable_confident=_count(any(map(_is_confident, found)) for found in confusable),
        other_answered=_count(bool(found) for found in others),
        certain_right=_count(_are_right(answers, Confidence.CERTAIN)),
        likely_right=_count(_are_right(answers, Confidence.LIKELY)),
    )


@cache
def _answers(catalogue: tuple[Repro, ...]) -> dict[str, tuple[Candidate, ...]]:
    """Return the candidates of each log, by name."""
    index = SignatureIndex(catalogue)
    return {log.name: match_log(decode_lines(log.text.encode()), index).candidates for log in read_wild_logs()}


def second_reader_agreement(*, is_counted: bool) -> tuple[int, int]:
    """Return on how many logs of one half a second reader agreed with the first, and how many both read."""
    answers = tomllib.loads(SECOND_READER.read_text("utf-8"))
    logs = {log.name: log for log in read_wild_logs()}
    half = [(logs[name], answer) for name, answer in answers.items() if logs[name].is_counted is is_counted]
    return _count(not {*(log.expected or ("none",))}.isdisjoint(answer.split(" or ")) for log, answer in half)


def not_on_top(repros: Iterable[Repro]) -> tuple[str, ...]:
    """Return the names of the positive logs whose first answer is not right."""
    catalogue = tuple(repros)
    return tuple(
        log.name for log in read_wild_logs() if log.kind is Kind.POSITIVE and measure([log], catalogue).on_top[0] == 0
    )


def without_a_log(repros: Iterable[Repro]) -> tuple[str, ...]:
    """Return the ids of the failures that are not silent and that no log of the corpus shows."""
    shown = {id_ for log in read_wild_logs() for id_ in log.expected}
    return tuple(repro.id for repro in repros if not repro.silent and repro.id not in shown)


def _are_right(answers: Iterable[tuple[WildLog, tuple[Candidate, ...]]], confidence: Confidence) -> Iterator[bool]:
    """Yield for each answer of this confidence whether it is right."""
    for log, found in answers:
        yield from (failure.repro.id in log.expected for failure in found if failure.confidence is confidence)


def _is_confident(candidate: Candidate) -> bool:
    return candidate.confidence is not Confidence.POSSIBLE


def _count(answers: Iterable[bool]) -> tuple[int, int]:
    found = list(answers)
    return sum(found), len(found)


def _share(count: tuple[int, int]) -> str:
    number, of = count
    return f"{number} of {of}"


_ROWS = {
    "positive logs with the right id among the candidates": "anywhere",
    "positive logs with the right id first": "on_top",
    "confusable logs with a certain or likely answer": "confusable_confident",
    "other logs with any answer": "other_answered",
    "certain answers that are right": "certain_right",
    "likely answers that are right": "likely_right",
}


def table(repros: Iterable[Repro]) -> str:
    """Return the figures, what the logs are about, and the searches, as Markdown."""
    catalogue = tuple(repros)
    halves = [measure([log for log in read_wild_logs() if log.is_counted is half], catalogue) for half in (False, True)]
    rows = ["| | half developed on | half only counted |", "| --- | --- | --- |"]
    rows += [f"| {row} | {' | '.join(_share(getattr(half, name)) for half in halves)} |" for row, name in _ROWS.items()]
    agreed = [_share(second_reader_agreement(is_counted=half)) for half in (False, True)]
    rows.append(f"| logs on which a second reader agreed | {' | '.join(agreed)} |")
    positives = Counter(_one_of(log) for log in read_wild_logs() if log.kind is Kind.POSITIVE)
    counts = ", ".join(f"{id_} ({count})" for id_, count in positives.most_common())
    rows += ["", f"The positive logs are about {counts}.", *_remaining_rows(), *_search_rows(catalogue)]
    return "".join(f"{row}\n" for row in rows)


def read_notes() -> dict[str, Any]:
    """Return the tables `remaining`, a reason for each log by name, and `search`."""
    notes = tomllib.loads(NOTES.read_text("utf-8"))
    further = [tomllib.loads(file.read_text("utf-8"))["search"] for file in sorted(SEARCHES.glob("*.toml"))]
    return notes | {"search": [*notes["search"], *(search for searches in further for search in searches)]}


def _remaining_rows() -> Iterator[str]:
    logs, reasons = {log.name: log for log in read_wild_logs()}, read_notes()["remaining"]
    for title, is_counted in (("developed on", False), ("only counted", True)):
        yield from ("", f"Positive logs without the right id first, on the half {title}:", "")
        half = {name: reason for name, reason in reasons.items() if logs[name].is_counted is is_counted}
        yield from (
            f"- [{name}]({logs[name].source}), {_one_of(logs[name])}: {reason}" for name, reason in half.items()
        )


def _one_of(log: WildLog) -> str:
    return " or ".join(log.expected)


def _search_rows(catalogue: Iterable[Repro]) -> Iterator[str]:
    missing = ", ".join(without_a_log(catalogue))
    yield from ("", f"For {missing} no log was found. These searches were made:", "")
    yield from ("| failure | where | searched for | found |", "| --- | --- | --- | --- |")
    for search in read_notes()["search"]:
        yield f"| {search['id']} | {search['where']} | {search['query']} | {search['found']} |"
