"""The common layout of commands: a bold heading per repro, and paragraphs with a label in the margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from repros.text.styled import Text
from repros.text.wording import wrap

MARGIN = 10
"""Columns of the margin, including its label."""
HANGING = " " * 9
"""Indent of a heading's continuation lines: the width of `RPR-0001 `."""


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs with a label in the margin of the first; none for an empty body."""

    label: str
    bodies: Iterable[str]
    style: str = "dim"
    """The style of the label."""
    is_wrapped: bool = True
    """Whether lines are wrapped; those of a log are not."""


@dataclass(frozen=True)
class Section:
    """A heading with its paragraphs."""

    id: str
    title: str
    paragraphs: Iterable[Paragraphs]
    style: str = "bold"


def section_text(section: Section, width: int) -> Text:
    """Return a section in at most `width` columns; only names, paths and lines of a log may be longer."""
    lines = heading(section.id, section.title, width, style=section.style)
    return Text("\n").join([*lines, *paragraph_lines(section.paragraphs, width)])


def paragraph_lines(paragraphs: Iterable[Paragraphs], width: int, *, indent: int = 0) -> Iterator[Text]:
    """Yield the lines of paragraphs, with `indent` columns in front of the margin; see :func:`entry`."""
    for one in paragraphs:
        if one.is_wrapped:
            yield from entries(one.label, one.bodies, width, style=one.style, indent=indent)
        else:
            yield from label_lines(one.label, one.bodies, style=one.style, indent=indent)


def heading(id_: str, title: str, width: int, *, style: str = "bold") -> Iterator[Text]:
    """Yield the lines of a repro's heading: its id and title, with continuation lines below the title."""
    for line in wrap(f"{id_} {title}".strip(), width, hanging=HANGING):
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
