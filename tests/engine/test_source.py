"""Edits of a source by the spans of its nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from repros.engine.source import Edit, Source, edit_repeatedly, first_line

SOURCE = Source("""\
text = "größer"; other = 1

# what it is for
# and since when
@decorated
@twice
def function():
    # not its own

    # its own
    return text
""")
TEXT, OTHER, FUNCTION = SOURCE.tree.body


def test_spans_count_bytes_and_lines_include_decorators() -> None:
    assert SOURCE.of(OTHER) == "other = 1"
    assert SOURCE.indent(OTHER) == 'text = "größer"; '
    assert first_line(FUNCTION) == 5
    assert SOURCE.text(*SOURCE.lines(FUNCTION)).startswith("@decorated\n@twice\ndef function():\n")


@pytest.mark.parametrize(
    ("number", "left"),
    [
        (0, 'text = "größer"; other = 1\n\n'),  # the module's: both comments above it go
        (1, "    # not its own\n\n"),  # that of the function: the one above the blank line stays
    ],
)
def test_a_removal_takes_the_comments_directly_above(number: int, left: str) -> None:
    assert isinstance(FUNCTION, ast.FunctionDef)
    edited = SOURCE.apply([SOURCE.removal([FUNCTION, FUNCTION.body[0]][number])])
    assert edited.endswith(left)


def test_an_edit_within_another_one_is_left_out() -> None:
    edits = [Edit(*SOURCE.span(OTHER), "pass"), Edit(SOURCE.span(OTHER)[0], SOURCE.span(OTHER)[0] + 5, "x")]
    assert SOURCE.apply(edits).startswith('text = "größer"; pass\n')


def test_edits_are_made_until_there_is_none() -> None:
    def halve(source: Source) -> Iterator[Edit]:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value % 2 == 0:
                yield Edit(*source.span(node), str(node.value // 2))

    assert edit_repeatedly("a = 12\nb = 5\nc = 4\n", halve) == "a = 3\nb = 5\nc = 1\n"
