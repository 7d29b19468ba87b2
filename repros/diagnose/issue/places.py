"""What is known of the place at which a traceback is cut."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from repros.model.cache.snapshot import remember

FILE = Path(__file__).with_name("places.toml")


@dataclass(frozen=True)
class Place:
    """A call that is often the last one of a traceback."""

    name: str
    patterns: tuple[str, ...]
    """Expressions of its frames."""
    says: str
    """What is done there."""
    check: str
    """What to look at before the error's text is there."""


@cache
def load_places() -> Sequence[Place]:
    """Return the places in the order of the table."""
    return remember("places", [FILE, __file__], _read)


def _read() -> Sequence[Place]:
    tables = tomllib.loads(FILE.read_text("utf-8"))
    return [Place(name, tuple(one["patterns"]), one["says"], one["check"]) for name, one in tables.items()]


def find_place(frame: str) -> Place | None:
    """Return what is known of a frame, or of the words that tell one; None if nothing is."""
    return next((place for place in load_places() if any(re.search(one, frame) for one in place.patterns)), None)
