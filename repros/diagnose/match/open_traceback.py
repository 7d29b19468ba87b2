"""Tracebacks whose last line is still to come: which log lines belong to one, for each traceback format."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from repros.diagnose.match import traceback_lines
from repros.diagnose.match.failures import ChainLinkTarget

_MARKS = re.compile(r"[ ~^]+$")
_RAISE = re.compile(
    r"""raise (?P<type>[A-Za-z_][\w.]*)\((?P<quote>["'])(?P<message>[^\\{]+)(?P=quote)\)(\s+from .+)?$"""
)
"""A statement that raises with a message written out; one with a brace or a backslash is composed."""


class Consumed(NamedTuple):
    """A line that belongs to a traceback."""

    frame: str | None = None
    exception: tuple[str, str | None] | None = None
    """Class and message, if it is the traceback's last line."""


@dataclass
class OpenTraceback:
    """A traceback whose last line has not been read yet."""

    consume: Callable[[OpenTraceback, str], Consumed | None]
    """The function that reads a line of its format; None for a line that does not belong to it."""
    kind: str = ""
    """The class that a notebook's header names."""
    is_headless: bool = False
    """Whether the log has lost the line that begins it, so that its first frames may be missing too."""
    target: ChainLinkTarget | None = None
    lines: list[str] = field(default_factory=list)
    end: int = 0
    """The number of its last line so far in the log."""
    frames: list[str] = field(default_factory=list)
    indent: int = 0
    foreign_lines: int = 0
    """Lines of other writers since it was opened."""
    is_repeat: bool = False
    """Whether another traceback had each of its lines first."""

    def add_line(self, text: str, consumed: Consumed) -> None:
        """Add a line that belongs to it."""
        if consumed.frame:
            if not self.frames:
                self.indent = max(0, indentation(text) - 2)
            self.frames.append(consumed.frame)
        self.lines.append(text)

    def parse_raise(self) -> tuple[str, str] | None:
        """Return class and message from the statement that raises, for a log that ends there."""
        return parse_raise(self.lines[-1]) if self.lines and self.frames else None


def parse_raise(text: str) -> tuple[str, str] | None:
    """Return class and message of a statement that raises, if it has its message written out."""
    raised = _RAISE.match(text.strip())
    return (raised["type"], raised["message"]) if raised else None


def indentation(text: str) -> int:
    """Return the number of columns by which a line is indented."""
    return len(text) - len(text.lstrip())


def consume_python(traceback: OpenTraceback, text: str) -> Consumed | None:
    """Read a line in Python's format."""
    if frame := traceback_lines.parse_python_frame(text):
        return Consumed(frame)
    if not text:
        return None
    if indentation(text) > traceback.indent:
        return Consumed() if traceback.lines else None
    if exception := traceback_lines.parse_exception(text):
        return Consumed(exception=exception)
    # If the log has lost its indentation, a frame is followed by its source line, and that by a line of marks.
    previous = traceback.lines[-1] if traceback.lines else ""
    follows_frame = previous.startswith("File") and traceback_lines.parse_python_frame(previous)
    is_unindented = previous and (follows_frame or _MARKS.match(text))
    return Consumed() if is_unindented else None


def consume_notebook(traceback: OpenTraceback, text: str) -> Consumed | None:
    """Read a line in IPython's format; every line before the last one belongs to the traceback."""
    kind, colon, message = text.partition(":")
    if kind.rpartition(".")[2] == traceback.kind.rpartition(".")[2] and (colon or not message):
        return Consumed(exception=(kind, message.strip() if colon else None))
    return Consumed(traceback_lines.parse_notebook_frame(text))


def consume_rich(traceback: OpenTraceback, text: str) -> Consumed | None:
    """Read a line in rich's format: a box, and the last line below it."""
    is_below_box = bool(traceback.lines) and traceback.lines[-1].startswith(("╰", "+-"))
    if is_below_box:
        exception = traceback_lines.parse_exception(text)
        return Consumed(exception=exception) if exception else None
    return Consumed(traceback_lines.parse_rich_frame(text)) if text.startswith(("│", "|", "╰", "+-")) else None
