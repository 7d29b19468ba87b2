"""The shared layout: headings, and labels in the margin of paragraphs."""

from __future__ import annotations

from collections.abc import Iterable

from repros.text import layout
from repros.text.styled import Text


def plain(lines: Iterable[Text]) -> str:
    return "\n".join(line.plain for line in lines)


def test_a_heading_continues_below_its_title() -> None:
    assert plain(layout.heading("RPR-0001", "A title of several words", 24)) == (
        "RPR-0001 A title of\n"
        "         several words"
    )  # fmt: skip


def test_an_entry_wraps_beside_its_label() -> None:
    assert plain(layout.entry("cause", "one two three", 17)) == (
        "cause     one two\n"
        "          three"
    )  # fmt: skip


def test_an_entry_with_a_margin_of_its_own() -> None:
    assert plain(layout.entry("because", "one two three", 21, margin=12, indent=2)) == (
        "  because     one two\n"
        "              three"
    )  # fmt: skip


def test_an_entry_without_a_body_has_no_line() -> None:
    assert list(layout.entry("needs", "", 80)) == []


def test_only_the_label_is_styled() -> None:
    first, second = layout.entry("cause", "one two three", 17, style="green")
    assert [first.parts, second.parts] == [
        [("cause     ", "green"), ("one two", "")],
        [("          ", "green"), ("three", "")],
    ]


def test_label_lines_does_not_wrap() -> None:
    assert plain(layout.label_lines("script", ["/a/path that is long", "x"])) == (
        "script    /a/path that is long\n"
        "          x"
    )  # fmt: skip


def test_entries_share_a_label() -> None:
    assert plain(layout.entries("works", ["one two", "three"], 15)) == (
        "works     one\n"
        "          two\n"
        "          three"
    )  # fmt: skip
