"""The table of audited entries: how accurate they were, and how many of their reports are of their cause."""

from __future__ import annotations

import hashlib
import textwrap
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("audited.toml")
SIZE = 60
LAST = "RPR-0183"
"""The newest id when the rule was written down."""


class Accuracy(StrEnum):
    """Of an entry as it was before the audit."""

    RIGHT = "right"
    IMPRECISE = "imprecise"
    WRONG = "wrong"


@dataclass(frozen=True)
class AuditedThreads:
    """The number of an entry's reports by what their readers found."""

    same: int
    """Of the entry's cause."""
    other: int
    """Of another cause, or of no failure."""
    unread: int
    """Not reached by a search."""


@dataclass(frozen=True)
class AuditedEntry:
    """An entry that a reader who had not written it compared with its threads and with the libraries' sources."""

    id: str
    accuracy: Accuracy
    threads: AuditedThreads
    found: str
    repaired: str = ""
    ran: str = ""
    left: str = ""


def read_audited() -> tuple[AuditedEntry, ...]:
    """Return the audited entries, in the order in which they were drawn."""
    return tuple(_entry(one) for one in _file()["entries"])


def drawn(ids: Iterable[str]) -> list[str]:
    """Return the ids that the rule of the file draws from all ids."""
    first = _file()["first"]
    pool = (id_ for id_ in ids if id_ <= LAST and id_ not in first)
    return sorted(pool, key=lambda id_: hashlib.sha256(f"audit-2026-11{id_}".encode()).hexdigest())[:SIZE]


def table() -> str:
    """Return the sentences and the table of audited entries."""
    return body(read_audited())


def body(entries: Sequence[AuditedEntry]) -> str:
    """Return the sentences and the table, with the cells in the order of the file."""
    numbers = [sum(entry.accuracy is accuracy for entry in entries) for accuracy in Accuracy]
    same, other, unread = (sum(getattr(e.threads, name) for e in entries) for name in ("same", "other", "unread"))
    sentences = (
        f"A rule that was written down first draws {SIZE} entries. Readers who had not written them have compared"
        f" {len(entries)} with their threads, the libraries' sources and changes upstream: {numbers[0]} were right,"
        f" {numbers[1]} imprecise, and {numbers[2]} had a false statement. Of their {same + other + unread} reports"
        f" {same} are of the entry's cause and {other} are not; no search reached the other {unread}. What was found"
        " has been corrected, except what *left* names. The rule is in `tests/sampled/audited.toml`."
    )
    rows = ["| Failure | before | reports: same cause, other, unread | found | left |", "|---|---|--:|---|---|"]
    return "\n".join([textwrap.fill(sentences, 120), "", *rows, *map(_row, entries)]) + "\n"


def _row(entry: AuditedEntry) -> str:
    threads = f"{entry.threads.same}, {entry.threads.other}, {entry.threads.unread}"
    return f"| {entry.id} | {entry.accuracy} | {threads} | {entry.found} | {entry.left or '·'} |"


def _entry(one: dict[str, Any]) -> AuditedEntry:
    return AuditedEntry(**{**one, "accuracy": Accuracy(one["accuracy"]), "threads": AuditedThreads(**one["threads"])})


def _file() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text("utf-8"))
