"""Validation of values in headers and other tables that authors write."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from repros.engine.signature import normalise

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Line breaks, terminal control characters and bidirectional controls: values may be printed in a line of code."""
_LONGEST_TEXT = 2_000
_LONGEST_QUOTE = 300
_FEWEST_LETTERS = 5


@dataclass(frozen=True)
class Key:
    """One key of the header."""

    expected: str
    """Description of valid values, for the error message."""
    parse: Callable[[Any], Any]
    """Converter of the TOML value; raises ValueError, TypeError or InvalidRequirement."""
    required: bool = False
    default: Any = None
    decides: bool = True
    """Whether a verdict may depend on it; changes of other keys leave evidence fresh."""


def text(value: Any) -> str:
    """Return a non-empty string of one line."""
    if not isinstance(value, str) or not value.strip():
        raise TypeError
    if _CONTROL.search(value) or len(value) > _LONGEST_TEXT:
        raise ValueError
    return value


def list_of(parse: Callable[[Any], Any], *, empty: bool = True) -> Callable[[Any], tuple[Any, ...]]:
    """Return a converter of lists that converts each item."""

    def parse_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not (value or empty):
            raise TypeError
        return tuple(parse(item) for item in value)

    return parse_all


def boolean(value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise TypeError
    return value


def match_text(value: Any) -> str:
    """Return a part of a message, with at least five letters outside placeholders."""
    # Without its placeholders the text must still distinguish one failure from another.
    letters = re.sub(r"\{\w+\}|[^A-Za-z]", "", normalise(text(value)))
    if len(letters) < _FEWEST_LETTERS:
        raise ValueError
    return str(value)


def lower_case(value: Any) -> str:
    """Return a lower-case string."""
    if text(value) != value.lower():
        raise ValueError
    return str(value)


def quote(value: Any) -> str:
    """Return the `repr` of a value, truncated to 300 characters."""
    try:
        shown = repr(value)
    except ValueError:  # a number with more digits than Python converts
        shown = "a number of too many digits"
    return shown if len(shown) <= _LONGEST_QUOTE else f"{shown[:_LONGEST_QUOTE]}..."
