"""Messages from public threads, with the family of their words."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FamilyLog:
    """A message from a public thread."""

    family: str
    source: str
    message: str
    written_from: bool
    """Whether the family's patterns were written with this message in view."""


def read_logs() -> tuple[FamilyLog, ...]:
    """Return the messages of all files next to this one."""
    files = sorted(Path(__file__).parent.glob("logs_*.toml"))
    tables = [table for file in files for table in tomllib.loads(file.read_text("utf-8"))["log"]]
    return tuple(FamilyLog(**table) for table in tables)
