"""The formats of tracebacks: which lines belong to one, which of them are frames, and which line ends it.

Each function parses one line, in time linear in the line's length.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from repros.diagnose.match.failures import ChainLinkTarget

HEADER = "Traceback (most recent call last)"
"""Python, IPython and rich print this, and pytest for exception chains."""
NOTEBOOK_HEADER = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,200}) +" + re.escape(HEADER) + "$")
PYTEST_LOCATION = re.compile(
    r"(?P<file>[^\s:]{1,4096}\.py):(?P<line>\d{1,9}): ?(?:in (?P<function>\S{1,500})|(?P<type>[A-Za-z_][\w.]*))?$"
)
"""The line that ends a frame in pytest's format."""
PYTEST_DEFINITION = re.compile(r"[> ] +(?:async )?def (?P<function>\w{1,500})\(")
"""A source line in pytest's format that names the frame's function."""

_PYTHON_FRAMES = (re.compile(r'[ |]*File "(?P<file>[^"]{1,4096})", line (?P<line>\d{1,9})(?:, in (?P<function>.+))?$'),)
_NOTEBOOK_FRAMES = (
    re.compile(r"(?:File )?(?P<file>[^\s:()][^:()]{0,4095}):(?P<line>\d{1,9})(?:, in (?P<function>[^\s(]{1,500}).*)?$"),
    re.compile(
        r"(?P<file>(?:Cell|Input) In ?\[\d{1,6}\])(?:, line (?P<line>\d{1,9}))?(?:, in (?P<function>[^\s(]{1,500}).*)?$"
    ),
    re.compile(r"(?P<file><ipython-input-[\w-]{1,80}>|[~/][^\s:()]{0,4095}) in (?P<function>[^\s(]{1,500})(?P<line>)"),
)
_RICH_FRAMES = (re.compile(r"[│|] ?(?P<file>[^\s:]{1,4096}):(?P<line>\d{1,9}) in (?P<function>\S{1,500})"),)
_BOX_SIDES = ("│", "|")
_BOX_BOTTOMS = ("╰", "+-")
_CARETS = re.compile(r"[ ~^]+$")
_ARROW = re.compile(r"(?:[│|] ?❱|-{1,10}>) {0,6}\d{1,9} (?:[│|]  ?)?(?P<code>.{1,500}?) *[│|]?$")
"""The line of code of a frame in rich's and in IPython's format."""
_RAISE = re.compile(
    r"""raise (?P<type>[A-Za-z_][\w.]*)\((?P<quote>["'])(?P<message>[^\\{]+)(?P=quote)\)(\s+from .+)?$"""
)
"""A statement that raises with a literal message; one with a brace or a backslash is composed."""

_CLASS_ENDINGS = (
    *("Error", "Exception", "Interrupt", "Exit", "Iteration", "Timeout", "ExceptionGroup", "Failure", "Warning"),
)
_LONGEST_NAME = 200
_REPEATED_NAME = re.compile(r"(?P<name>[\w.]{4,60}?)(?P=name){1,7}$")
_PLAIN_WORDS = {"Error", "Warning"}
"""Log levels and headings that end like a class name but do not name one."""


class ParsedLine(NamedTuple):
    """A line that belongs to a traceback."""

    frame: str | None = None
    exception: tuple[str, str | None] | None = None
    """Class and message, if it is the traceback's last line."""


@dataclass
class OpenTraceback:
    """A traceback whose last line has not been parsed yet."""

    parse: Callable[[OpenTraceback, str], ParsedLine | None]
    """The parser of a line in its format; it returns None for a line that does not belong to the traceback."""
    exception_class: str = ""
    """The class that a notebook's header names."""
    is_headless: bool = False
    """Whether the log lacks its header, so that its first frames may be missing too."""
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
    code: dict[str, str] = field(default_factory=dict)
    """The first line of code of each frame that has one."""

    def add_line(self, text: str, parsed: ParsedLine) -> None:
        """Add a line that belongs to it."""
        if parsed.frame:
            if not self.frames:
                self.indent = max(0, indentation(text) - 2)
            self.frames.append(parsed.frame)
        elif self.frames and parsed.exception is None and (code := self._code(text)):
            self.code.setdefault(self.frames[-1], code)
        self.lines.append(text)

    def _code(self, text: str) -> str:
        """Return the line of code of the last frame; empty if the line has none."""
        if self.parse is parse_python:
            return "" if _CARETS.match(text) else text.strip(" |")
        arrow = _ARROW.match(text)
        return arrow["code"].strip() if arrow else ""

    def parse_raise(self) -> tuple[str, str] | None:
        """Return class and message from the statement that raises, for a log that ends there."""
        return parse_raise(self.lines[-1]) if self.lines and self.frames else None


def parse_python(traceback: OpenTraceback, text: str) -> ParsedLine | None:
    """Parse a line in Python's format."""
    if frame := find_python_frame(text):
        return ParsedLine(frame)
    if not text:
        return None
    if indentation(text) > traceback.indent:
        return ParsedLine() if traceback.lines else None
    if exception := parse_exception(text):
        return ParsedLine(exception=exception)
    # If the log has lost its indentation, a frame is followed by its source line, and that by a line of carets.
    previous = traceback.lines[-1] if traceback.lines else ""
    follows_frame = previous.startswith("File") and find_python_frame(previous)
    is_unindented = previous and (follows_frame or _CARETS.match(text))
    return ParsedLine() if is_unindented else None


def parse_notebook(traceback: OpenTraceback, text: str) -> ParsedLine | None:
    """Parse a line in IPython's format; every line before the last one belongs to the traceback."""
    name, colon, message = text.partition(":")
    if name.rpartition(".")[2] == traceback.exception_class.rpartition(".")[2] and (colon or not message):
        return ParsedLine(exception=(name, message.strip() if colon else None))
    return ParsedLine(_find_frame(text, _NOTEBOOK_FRAMES))


def parse_rich(traceback: OpenTraceback, text: str) -> ParsedLine | None:
    """Parse a line in rich's format: a box, and the last line below it."""
    if traceback.lines and traceback.lines[-1].startswith(_BOX_BOTTOMS):
        exception = parse_exception(text)
        return ParsedLine(exception=exception) if exception else None
    is_box = text.startswith((*_BOX_SIDES, *_BOX_BOTTOMS))
    return ParsedLine(_find_frame(text, _RICH_FRAMES)) if is_box else None


def find_python_frame(text: str) -> str | None:
    """Return `file:line function`, as the engine records frames, if the line is a frame in Python's format."""
    return _find_frame(text, _PYTHON_FRAMES)


def _find_frame(text: str, patterns: tuple[re.Pattern[str], ...]) -> str | None:
    for pattern in patterns:
        if frame := pattern.match(text):
            function = (frame["function"] or "<module>").rpartition(".")[2].rstrip(",")
            return f"{frame['file']}:{frame['line'] or 0} {function}"
    return None


def parse_exception(text: str) -> tuple[str, str | None] | None:
    """Return class and message if a line can be the last of a traceback: `RuntimeError: no`, `a.b.OddError`.

    The message is None for a class without a colon, and empty if the message begins on the next line.
    """
    name, colon, message = text.partition(":")
    name = name.strip(" `*#-")
    if (
        not name
        or " " in name
        or len(name) > _LONGEST_NAME
        or (colon and message and not message.startswith((" ", "\t")))
    ):
        return None
    *modules, class_name = name.split(".")
    if not all(part.isidentifier() for part in (*modules, class_name)):
        return None
    is_class_name = class_name.endswith(_CLASS_ENDINGS) and (modules or class_name not in _PLAIN_WORDS)
    if not (is_class_name or (modules and colon and class_name[0].isupper())):
        return None
    first_line = message.strip().rstrip("`*") if colon else None
    if repeated := _REPEATED_NAME.match(name):  # several ranks wrote parts of the same line at the same time
        return repeated["name"], first_line and first_line.lstrip(": ")
    return name, first_line


def parse_raise(text: str) -> tuple[str, str] | None:
    """Return class and message of a statement that raises with a literal message."""
    statement = _RAISE.match(text.strip())
    return (statement["type"], statement["message"]) if statement else None


def indentation(text: str) -> int:
    """Return the number of columns by which a line is indented."""
    return len(text) - len(text.lstrip())
