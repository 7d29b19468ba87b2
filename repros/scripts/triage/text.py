"""An answer of `repros triage` as text of at most :data:`MOST_LINES` lines."""

from __future__ import annotations

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
_CUT = " [...]"


def format_answer(answer: Answer, width: int) -> Text:
    """Return an answer in at most `width` columns, except for names, links and lines to paste."""
    width = min(width, MOST_COLUMNS)
    head = list(_title_lines(answer, width))
    notes = [Text(line, "yellow") for note in answer.notes for line in wrap(note, width)]
    tail = [*label_lines("next", answer.next), *notes]
    room = MOST_LINES - len(head) - len(tail)
    parts = _fit([_section_lines(section, width) for section in answer.sections], room)
    return Text("\n").join([*head, *(line for part in parts for line in part), *tail])


def _title_lines(answer: Answer, width: int) -> Iterator[Text]:
    """Yield the title, behind it the id and the certainty."""
    stated = [] if answer.certainty is Certainty.UNKNOWN else [answer.certainty.value]
    mark = ", ".join(filter(None, [answer.repro_id, *stated]))
    lines = wrap(answer.title, width)
    for line in lines[:-1]:
        yield Text(line, "bold")
    if not mark:
        yield Text(lines[-1], "bold")
    elif len(lines[-1]) + 3 + len(mark) <= width:
        yield Text(f"{lines[-1]}   ", "bold").append(mark, _STYLES[answer.certainty])
    else:
        yield Text(lines[-1], "bold")
        yield Text(mark, _STYLES[answer.certainty])


def _section_lines(section: Section, width: int) -> list[Text]:
    room = width - MARGIN
    lines = [*section.bodies] if section.is_code else [line for body in section.bodies for line in wrap(body, room)]
    if len(lines) > section.most_lines:
        last = lines[section.most_lines - 1]
        lines = [*lines[: section.most_lines - 1], f"{last[: room - len(_CUT)]}{_CUT}"]
    return list(label_lines(section.label, lines))


def _fit(parts: list[list[Text]], room: int) -> list[list[Text]]:
    """Shorten parts to a number of lines: first the last lines of later parts, then whole later parts."""
    parts = [*parts]
    for least in (2, 1, 0):
        for at in reversed(range(len(parts))):
            excess = sum(map(len, parts)) - room
            if excess <= 0:
                return parts
            parts[at] = parts[at][: max(least, len(parts[at]) - excess)]
    return parts
