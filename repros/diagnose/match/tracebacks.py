"""Parse the exception chains in the lines of one writer.

Several ranks may write to one stream without labels. They run the same program, so their tracebacks agree from the top:
a line that repeats a line of one traceback belongs to another traceback that has reached the same point.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from repros.diagnose.match.failures import ChainLinkTarget, PartialException
from repros.diagnose.match.traceback_formats import (
    HEADER,
    NOTEBOOK_HEADER,
    PYTEST_DEFINITION,
    PYTEST_LOCATION,
    OpenTraceback,
    ParsedLine,
    find_python_frame,
    indentation,
    parse_exception,
    parse_notebook,
    parse_python,
    parse_raise,
    parse_rich,
)
from repros.diagnose.match.wrappers import LogLine

MOST_OPEN = 8
"""Tracebacks parsed at the same time; one more and the oldest is dropped."""
MOST_LINES = 5_000
"""Lines of one traceback; the deepest recursion that Python allows prints fewer."""
MOST_WAITING = 8
"""Chains that a parser keeps before it looks for finished ones; the open tracebacks keep one more each."""
MOST_LINKS = 100
"""Exceptions of one chain; the next one begins a new chain."""
_MOST_FOREIGN_LINES = 60
"""Lines of other writers between two lines of one traceback."""

_CONNECTORS = {
    "The above exception was the direct cause of the following exception:": (True, "cause"),
    "During handling of the above exception, another exception occurred:": (True, "context"),
    "terminated with the following error:": (False, "cause"),
}
"""How a line between two exceptions ends: whether the next one is the outer of the two, and how they are linked."""
_CONNECTOR_ENDINGS = tuple(_CONNECTORS)
_GROUP_MEMBER = re.compile(r"[ |]*\+-?\+?-{10,40} (?:\d+|\.\.\.) -{10,40}$")
_MESSAGE_END = re.compile(
    r"[-=_*]{3}|`{3}|FAILED |Process |[ |]*\+-{3}"
    # Other writers: a progress bar, a warning of Python's or of C++'s, a launcher, a scheduler, a shell.
    r"|.{0,200}(?:\d%\||\d+/(?:\d+|\?) \[\d\d:\d\d|\dit \[\d\d:\d\d)"
    r"|.{0,400}\.py:\d{1,6}: [A-Z]\w{0,80}Warning: |\[[IWEF]\d{4} |\[[IWEF] \w{1,80}\.cpp:\d|W(?:ARNING|arning): "
    r"|(?:srun|slurmstepd|wandb|mpirun|prterun|Exception ignored in)\b.{0,80}:"
    r"|Killed$|Terminated$|Aborted\b|Segmentation fault|destroy_process_group\(\)|terminate called "
    r"|.{0,200}: line \d{1,9}: +\d{1,9} "
)
"""Lines that no message of Python's has, and that other writers print right after one."""
_PARAGRAPH_INDENT = 4
"""Columns; after a blank line, only lines indented at least this far belong to the message."""


class TracebackParser:
    """A parser of one writer's lines, in order."""

    def __init__(self, *, pytest: bool) -> None:
        """Start a parser.

        Args:
            pytest: whether the log has pytest's format; ordinary lines resemble it.
        """
        self._chains: list[list[PartialException]] = []
        self._pytest = pytest
        self._open: list[OpenTraceback] = []
        self._closed: deque[list[str]] = deque(maxlen=MOST_OPEN)
        self._newest: ChainLinkTarget | None = None
        """The last exception; the next one becomes its inner exception."""
        self._is_message_open = False
        """Whether the next line may continue its message."""
        self._next_target: ChainLinkTarget | None = None
        """The next exception's place in a chain, if a line of the log states it."""
        self._pytest_frames: deque[str] = deque(maxlen=MOST_LINES)
        self._pytest_function = ""
        self._in_group = False
        self._in_box = False
        self._unparsed: LogLine | None = None
        """The last line, if it belongs to nothing: a log may be cut to the statement that raises."""

    def take_finished(self) -> list[list[PartialException]]:
        """Return and remove the chains that no further line can change; none while there are few chains."""
        if len(self._chains) <= MOST_WAITING:
            return []
        targets = (self._newest, self._next_target, *(traceback.target for traceback in self._open))
        alive = {id(target.chain) for target in targets if target is not None}
        finished = [chain for chain in self._chains if id(chain) not in alive]
        self._chains = [chain for chain in self._chains if id(chain) in alive]
        return finished

    def finish(self) -> list[list[PartialException]]:
        """Return the remaining chains after the last line."""
        for traceback in self._open:
            if raised := traceback.parse_raise():
                exception = PartialException(
                    *(raised[0], traceback.end, traceback.frames, not traceback.is_headless),
                    has_log_prefix=False,
                    code=traceback.code,
                )
                self._add_exception(exception, raised[1], traceback.target)
        self._open.clear()
        if (line := self._unparsed) and (raised := parse_raise(line.text)):
            exception = PartialException(
                raised[0], line.number, [], has_traceback=False, has_log_prefix=line.has_log_prefix
            )
            self._add_exception(exception, raised[1], self._next_target)
        return self._chains

    def parse_line(self, line: LogLine) -> None:
        """Parse the next line."""
        text = line.text
        if self._pytest:
            if text.startswith("E  "):
                unmarked = text[4:] if text.startswith("E   ") else text[1:].lstrip()
                self._parse_unboxed(line._replace(text=unmarked), from_pytest=True)
                return
            self._parse_pytest_location(text)
        self._in_box = False
        if self._in_group:
            head, bar, tail = text.partition("|")
            self._in_box = bool(bar) and not head.strip()
            if self._in_box:
                line = line._replace(text=tail.removeprefix(" "))
        self._parse_unboxed(line, from_pytest=False)

    def _parse_unboxed(self, line: LogLine, *, from_pytest: bool) -> None:
        """Parse a line without the box of an exception group; `from_pytest`: pytest marked it as part of an error."""
        text = line.text
        self._unparsed = None
        if HEADER in text and self._open_traceback(text):
            return
        if self._open and self._extend_traceback(line):
            return
        if self._parse_connector(text):
            return
        if self._open_headless_traceback(line):
            return
        if self._is_message_open and self._newest is not None:
            self._is_message_open = self._extend_message(line, self._newest.exception)
            if self._is_message_open:
                return
        if text.startswith("FAILED "):
            text = text.partition(" - ")[2]
        if parsed := parse_exception(text):
            frames = list(self._pytest_frames) if from_pytest else []
            exception = PartialException(parsed[0], line.number, frames, bool(frames), line.has_log_prefix)
            self._add_exception(exception, parsed[1], self._next_target)
            if from_pytest:
                self._pytest_frames.clear()
        else:
            self._unparsed = line

    def _open_traceback(self, text: str) -> bool:
        """Open a traceback if the line is the header of one; return whether it is."""
        head, _, tail = text.partition(HEADER)
        head, tail = head.rstrip(), tail.strip()
        if header := NOTEBOOK_HEADER.match(text):
            traceback = OpenTraceback(parse_notebook, header["type"])
            self._open.clear()  # a notebook has one writer, and an open traceback would consume every later line
        elif tail == ":":
            traceback = OpenTraceback(parse_python)
            self._in_group = head.endswith("+ Exception Group") or (self._in_group and self._in_box)
            if head.endswith("Original"):  # a DataLoader worker's traceback is part of the outer exception's message
                self._next_target = self._newest and self._newest._replace(via="cause")
        elif tail and not tail.strip("─╮-+ "):
            traceback = OpenTraceback(parse_rich)
        else:
            return False
        traceback.target, self._next_target, self._is_message_open = self._next_target, None, False
        self._open.append(traceback)
        del self._open[:-MOST_OPEN]
        return True

    def _open_headless_traceback(self, line: LogLine) -> bool:
        """Open a traceback at a frame without a header: people paste the end of a log."""
        if self._open or not find_python_frame(line.text):
            return False
        self._open.append(OpenTraceback(parse_python, is_headless=True, target=self._next_target))
        self._next_target, self._is_message_open = None, False
        return self._extend_traceback(line)

    def _extend_traceback(self, line: LogLine) -> bool:
        """Add the line to the open traceback that it belongs to; return False if it belongs to none."""
        text = line.text
        parsed_by = [(traceback, traceback.parse(traceback, text)) for traceback in reversed(self._open)]
        takers = [(traceback, parsed) for traceback, parsed in parsed_by if parsed is not None]
        if not takers:
            for traceback in self._open:
                traceback.foreign_lines += 1
            self._open = [traceback for traceback in self._open if traceback.foreign_lines <= _MOST_FOREIGN_LINES]
            return False
        repeat = self._find_repeat(takers, text)
        # A traceback that has only repeated another one continues to repeat it: no other line belongs to it.
        traceback, parsed = repeat or next((taker for taker in takers if not taker[0].is_repeat), takers[0])
        traceback.is_repeat = repeat is not None and (traceback.is_repeat or not traceback.lines)
        traceback.add_line(text, parsed)
        traceback.end = line.number
        self._open.remove(traceback)
        if parsed.exception is not None:
            self._closed.append(traceback.lines)
            name, message = parsed.exception
            frames = traceback.frames
            is_complete = bool(frames) and not traceback.is_headless
            exception = PartialException(
                name, line.number, frames, is_complete, line.has_log_prefix, code=traceback.code
            )
            self._add_exception(exception, message, traceback.target)
        elif len(traceback.lines) <= MOST_LINES:
            self._open.append(traceback)  # to the end of the list: the last writer is likely to write the next line
        return True

    def _find_repeat(
        self, takers: Sequence[tuple[OpenTraceback, ParsedLine]], text: str
    ) -> tuple[OpenTraceback, ParsedLine] | None:
        """Return the traceback that has reached the point where another one has the same line."""
        for traceback, parsed in takers if len(takers) > 1 else ():
            at = len(traceback.lines)
            others = [*(other.lines for other in self._open if other is not traceback), *self._closed]
            if any(at < len(lines) and lines[at] == text for lines in others):
                return traceback, parsed
        return None

    def _add_exception(self, exception: PartialException, message: str | None, target: ChainLinkTarget | None) -> None:
        """Add an exception to its chain: that of its target, or a new one."""
        exception.add_line(message or "")
        if target is None or len(target.chain) >= MOST_LINKS:
            chain = [exception]
            self._chains.append(chain)
        elif target.is_outer:
            chain = target.chain
            exception.via, target.exception.via = target.exception.via, target.via
            chain.insert(next(index for index, linked in enumerate(chain) if linked is target.exception), exception)
        else:
            chain = target.chain
            exception.via = target.via
            chain.append(exception)
        self._next_target = None
        self._newest = ChainLinkTarget(exception, chain, is_outer=False, via="")
        self._is_message_open = message is not None

    def _parse_connector(self, text: str) -> bool:
        """Parse a line between two exceptions of a chain, which states how the next one is linked to the last."""
        if self._newest is None or not text:
            return False
        link = None
        if text.endswith(_CONNECTOR_ENDINGS):
            link = next(link for ending, link in _CONNECTORS.items() if text.endswith(ending))
        elif self._in_group and _GROUP_MEMBER.match(text):
            link = (False, "group")
        if link is None:
            return False
        self._next_target = self._newest._replace(is_outer=link[0], via=link[1])
        self._is_message_open = False
        return True

    def _extend_message(self, line: LogLine, exception: PartialException) -> bool:
        """Add a line to an exception's message; return False if the message has ended."""
        text = line.text
        if not text:
            exception.ends_with_blank = True
            return True
        starts_log_record = line.has_log_prefix and not exception.has_log_prefix
        after_blank = exception.ends_with_blank and exception.has_message
        if starts_log_record or (after_blank and indentation(text) < _PARAGRAPH_INDENT):
            return False
        if _MESSAGE_END.match(text) or parse_exception(text):
            return False
        if self._pytest and PYTEST_LOCATION.match(text):
            return False
        exception.ends_with_blank = False
        return exception.add_line(text)

    def _parse_pytest_location(self, text: str) -> None:
        """Collect the frames of pytest's format, in which a frame's source precedes its file and line."""
        if definition := PYTEST_DEFINITION.match(text):
            self._pytest_function = definition["function"]
        elif location := PYTEST_LOCATION.match(text):
            function = location["function"] or self._pytest_function or "<module>"
            frame = f"{location['file']}:{location['line']} {function}"
            if location["type"] and self._newest:
                self._newest.exception.frames.append(frame)
                self._pytest_frames.clear()
            else:
                self._pytest_frames.append(frame)
        elif text.startswith("____"):
            self._pytest_frames.clear()
