"""What is known of the place at which a traceback is cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from repros.model.cache.snapshot import remember

FILE = Path(__file__).with_name("last_calls.toml")


@dataclass(frozen=True)
class KnownCall:
    """A call that is often the last one of a traceback."""

    name: str
    patterns: tuple[str, ...]
    """Expressions of its frames."""
    says: str
    """What is done there."""
    check: str
    """What to look at before the error's text is there."""


@cache
def load_calls() -> Sequence[KnownCall]:
    """Return the calls in the order of the table."""
    return remember("last-calls", [FILE, __file__], _read)


def _read() -> Sequence[KnownCall]:
    import tomllib  # noqa: PLC0415 - only what has changed is read

    tables = tomllib.loads(FILE.read_text("utf-8"))
    return [KnownCall(name, tuple(one["patterns"]), one["says"], one["check"]) for name, one in tables.items()]


def find_call(frame: str) -> KnownCall | None:
    """Return what is known of a frame, or of the words that tell one; None if nothing is."""
    return next((call for call in load_calls() if any(re.search(one, frame) for one in call.patterns)), None)
