"""The common layout of commands: a bold heading per repro, and paragraphs with a label in the margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from repros.text.styled import Text
from repros.text.wording import wrap

MARGIN = 10
"""Columns of the margin, including its label."""
HANGING = " " * 9
"""Indent of a heading's continuation lines: the width of `RPR-0001 `."""


def heading(id_: str, title: str, width: int, *, style: str = "bold") -> Iterator[Text]:
    """Yield the lines of a repro's heading: its id and title, with continuation lines below the title."""
    for line in wrap(f"{id_} {title}", width, hanging=HANGING):
        yield Text(line, style)


def entry(
    label: str, body: str, width: int, *, style: str = "dim", margin: int = MARGIN, indent: int = 0
) -> Iterator[Text]:
    """Yield the lines of a wrapped paragraph with a label in its margin; none for an empty body.

    Args:
        label: text of the margin's first line; may be empty.
        body: the paragraph.
        width: columns of the output, including indent and margin.
        style: style of the label.
        margin: columns of the margin.
        indent: columns in front of the margin.
    """
    left = indent + margin
    lines = (line[left:] for line in wrap(body, width, " " * left))
    yield from label_lines(label, lines, style=style, margin=margin, indent=indent)


def entries(
    label: str, bodies: Iterable[str], width: int, *, style: str = "dim", margin: int = MARGIN, indent: int = 0
) -> Iterator[Text]:
    """Yield wrapped paragraphs with a label in the margin of the first; see :func:`entry`."""
    for body in bodies:
        yield from entry(label, body, width, style=style, margin=margin, indent=indent)
        label = ""


def label_lines(
    label: str, lines: Iterable[str], *, style: str = "dim", margin: int = MARGIN, indent: int = 0
) -> Iterator[Text]:
    """Yield unwrapped lines with a label in the margin of the first."""
    for line in lines:
        yield Text(f"{'':<{indent}}{label:<{margin}}", style).append(line)
        label = ""
