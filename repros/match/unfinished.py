"""A traceback while its lines come: which line is one of it, in each way that tracebacks are printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from repros.match import dialects
from repros.match.failures import Standing

_MARKS = re.compile(r"[ ~^]+$")


class Taken(NamedTuple):
    """What a line is to a traceback that it belongs to."""

    frame: str | None = None
    last: tuple[str, str | None] | None = None
    """Class and message, if it is the last line."""


@dataclass
class Unfinished:
    """A traceback whose last line has not come yet."""

    read: Callable[[Unfinished, str], Taken | None]
    """How its kind is read; None for a line that is none of it."""
    kind: str = ""
    """The class that a notebook's header names."""
    standing: Standing | None = None
    lines: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    indent: int = 0
    foreign: int = 0
    follows: bool = False
    """Whether another traceback had each of its lines first."""

    def take(self, text: str, taken: Taken) -> None:
        """Add a line that belongs here."""
        if taken.frame:
            if not self.frames:
                self.indent = max(0, depth(text) - 2)
            self.frames.append(taken.frame)
        self.lines.append(text)


def depth(text: str) -> int:
    """Return by how many columns a line is indented."""
    return len(text) - len(text.lstrip())


def python(traceback: Unfinished, text: str) -> Taken | None:
    """Read a line of Python's own form."""
    if frame := dialects.frame(text):
        return Taken(frame)
    if not text:
        return None
    if depth(text) > traceback.indent:
        return Taken() if traceback.lines else None
    if last := dialects.last(text):
        return Taken(last=last)
    # Where the indentation was lost on the way, a frame is followed by its source, and that by marks below it.
    lines = traceback.lines
    source = lines and ((lines[-1].startswith("File") and dialects.frame(lines[-1])) or _MARKS.match(text))
    return Taken() if source else None


def notebook(traceback: Unfinished, text: str) -> Taken | None:
    """Read a line of IPython's; all that comes before its last line is part of it."""
    kind, colon, message = text.partition(":")
    if kind.rpartition(".")[2] == traceback.kind.rpartition(".")[2] and (colon or not message):
        return Taken(last=(kind, message.strip() if colon else None))
    return Taken(dialects.notebook_frame(text))


def rich(traceback: Unfinished, text: str) -> Taken | None:
    """Read a line of rich's: a box, and below it the last line."""
    closed = bool(traceback.lines) and traceback.lines[-1].startswith(("╰", "+-"))
    if closed:
        last = dialects.last(text)
        return Taken(last=last) if last else None
    return Taken(dialects.rich_frame(text)) if text.startswith(("│", "|", "╰", "+-")) else None
