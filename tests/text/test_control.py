"""Terminal sequences and control characters are removed from text, or escaped in JSON."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.text.control import dump_json, remove_controls, remove_sequences

FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

HOSTILE = st.lists(
    st.sampled_from([*"\x1b\x9b\x9d\x90\x07\x9c\n\t\r\x00\u202e[]();0m8cPX^_\\ A52", "\x1b[0m", "\x1b]52;c;", "word"])
).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1bcb\x1b(0c\x1b#8d", "abcd"),
        ("\x9b31mred\x9d0;title\x9cend", "redend"),
        ("\x1b]52;c;aGk=\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        # One pass over the inner sequences makes the outer ones whole.
        ("a\x1b\x1b[0m]52;c;aGk=\x1b\x1b[0m\\b", "ab"),
        # What is never closed is text.
        ("\x1b]0;title\nRuntimeError: boom\x07", "]0;title\nRuntimeError: boom"),
        ("1\u202e2\u20663\u200f", "123"),
        ("tab\tnewline\nkept, caf\u00e9 \u4e2d", "tab\tnewline\nkept, caf\u00e9 \u4e2d"),
        ("name\udcff", "name"),
    ],
)
def test_what_a_terminal_would_obey_is_removed(text: str, shown: str) -> None:
    assert remove_controls(text) == shown


@given(HOSTILE | st.text())
def test_nothing_forbidden_is_left_and_nothing_is_left_to_remove(text: str) -> None:
    shown = remove_controls(text)
    assert not FORBIDDEN.search(shown)
    assert remove_controls(shown) == shown
    assert shown.count("\n") == text.count("\n")


@given(st.text(st.characters(exclude_categories=["C"])))
def test_text_without_control_characters_is_unchanged(text: str) -> None:
    assert remove_controls(text) == text


@given(st.dictionaries(HOSTILE | st.text(), HOSTILE | st.text()))
def test_json_has_no_control_character_and_loses_nothing(value: dict[str, str]) -> None:
    text = dump_json(value)
    assert not FORBIDDEN.search(text)
    assert json.loads(text) == value


@pytest.mark.parametrize(
    "text", ["\x1b" * 100_000 + "[0m" * 100_000, "\x1b]" * 100_000, "\x9d" * 200_000, "\x1b[" + "0" * 300_000]
)
def test_time_does_not_grow_with_the_square(text: str) -> None:
    begun = time.process_time()
    remove_sequences(text)
    assert time.process_time() - begun < 2
