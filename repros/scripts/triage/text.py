"""An answer of `repros triage` as text of at most :data:`MOST_LINES` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.text.layout import MARGIN, label_lines
from repros.text.styled import Text
from repros.text.wording import wrap

MOST_LINES = 15
"""Lines of an answer."""
MOST_COLUMNS = 100
"""Columns in a wide terminal."""
_STYLES = {
    Certainty.CERTAIN: "bold green",
    Certainty.LIKELY: "bold yellow",
    Certainty.POSSIBLE: "bold magenta",
    Certainty.UNKNOWN: "bold",
}
_DIFF = {"+": "green", "-": "red"}
_CUT = " [...]"
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")


def format_answer(answer: Answer, width: int) -> Text:
    """Return an answer in at most `width` columns, except for names, links and lines to paste."""
    width = min(width, MOST_COLUMNS)
    head = list(_title_lines(answer, width))
    tail = list(label_lines("next", answer.next))
    notes = [line for note in answer.notes for line in wrap(note, width)]
    room = MOST_LINES - len(head) - len(tail)
    notes = notes[: max(room - len(answer.sections), 1)]
    parts = _fit(answer.sections, room - len(notes), width - MARGIN)
    body = [line for part in parts for line in part]
    return Text("\n").join([*head, *body, *tail, *(Text(note, "yellow") for note in notes)])


def _title_lines(answer: Answer, width: int) -> Iterator[Text]:
    """Yield the title, behind it the id and the certainty."""
    subtitle = answer.subtitle
    *before, last = wrap(answer.title, width)
    yield from (Text(line, "bold") for line in before)
    if not subtitle:
        yield Text(last, "bold")
    elif len(last) + 3 + len(subtitle) <= width:
        yield Text(f"{last}   ", "bold").append(subtitle, _STYLES[answer.certainty])
    else:
        yield Text(last, "bold")
        yield Text(subtitle, _STYLES[answer.certainty])


def _fit(sections: tuple[Section, ...], room: int, width: int) -> Iterator[list[Text]]:
    """Yield the lines of the sections that fit: the least important ones are shortened first, then left out."""
    lines = [len(_lines(section, section.most_lines, width)) for section in sections]
    by_importance = sorted(range(len(sections)), key=lambda at: (sections[at].importance, at), reverse=True)
    for shorten in (True, False):
        for at in by_importance:
            excess = max(sum(lines) - room, 0)
            lines[at] = _shorter(sections[at], lines[at], excess, shorten=shorten)
    for section, most in zip(sections, lines, strict=True):
        if most:
            yield list(_labelled(section, _lines(section, most, width)))


def _shorter(section: Section, lines: int, excess: int, *, shorten: bool) -> int:
    """Return the lines that a section keeps: at least one if it is only shortened, as a part of it says something."""
    if not excess or (shorten and section.is_code):
        return lines
    if section.is_whole or section.is_code:
        return 0
    return max(min(lines, int(shorten)), lines - excess)


def _labelled(section: Section, lines: list[str]) -> Iterator[Text]:
    for number, line in enumerate(lines):
        label = section.label if number == 0 else ""
        style = _DIFF.get(line[:1], "") if section.is_code else ""
        yield Text(f"{label:<{MARGIN}}", "dim").append(line, style)


def _lines(section: Section, most: int, width: int) -> list[str]:
    """Return the lines of a section; of a text that is too long, the whole sentences that fit, or its beginning."""
    if section.is_code:
        return list(section.bodies[:most])
    lines: list[str] = []
    for body in section.bodies:
        if len(lines) < most:
            lines += _shortened(body, most - len(lines), width)
    return lines


def _shortened(body: str, most: int, width: int) -> list[str]:
    sentences = _SENTENCE_END.split(body)
    for number in range(len(sentences), 0, -1):
        lines = wrap(" ".join(sentences[:number]), width)
        if len(lines) <= most:
            return lines
    lines = wrap(body, width)[:most]
    kept = wrap(lines[-1], max(width - len(_CUT), 1))
    return [*lines[:-1], f"{kept[0]}{_CUT}"]
