"""The watchdog's lines from public threads, `public_logs.toml`, and what `repros match` answers to them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.diagnose.match.hang.find import Hang, find_log_hang
from repros.diagnose.match.hang.watchdog import read_watchdog
from repros.diagnose.match.log import decode_lines

FILE = Path(__file__).with_name("public_logs.toml")


@dataclass(frozen=True)
class PublicLog:
    """One log, with what a reader takes from it."""

    name: str
    source: str
    torch: str
    kind: str
    """As :class:`repros.diagnose.match.hang.disagree.Kind` writes it; `none` if no rank waits."""
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    why: str
    text: str

    @property
    def hang(self) -> Hang:
        """The answer."""
        return find_log_hang(read_watchdog(decode_lines(self.text.encode())))

    @property
    def answer(self) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """Kind, waiting and missing ranks of the disagreement that the answer puts first."""
        first = next(iter(self.hang.disagreements), None)
        return (first.kind.value, first.waiting, first.missing) if first else ("none", (), ())

    @property
    def is_right(self) -> bool:
        """Whether the answer is what the reader takes from the log."""
        return self.answer == (self.kind, self.waiting, self.missing)


def read_public_logs() -> tuple[PublicLog, ...]:
    """Return the logs in the order of the file."""
    tables: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["log"]
    return tuple(_public_log(table) for table in tables)


def _public_log(table: dict[str, Any]) -> PublicLog:
    return PublicLog(**table | {"waiting": tuple(table["waiting"]), "missing": tuple(table["missing"])})
