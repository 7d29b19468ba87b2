"""Read the exception chains in the lines of one writer.

Several ranks may write to one stream without labels. They run the same program, so their tracebacks agree from the top:
a line that repeats a line of one traceback belongs to another traceback that has reached the same point.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from repros.diagnose.match import traceback_lines
from repros.diagnose.match.failures import ChainLinkTarget, PartialException
from repros.diagnose.match.open_traceback import (
    Consumed,
    OpenTraceback,
    consume_notebook,
    consume_python,
    consume_rich,
    indentation,
    parse_raise,
)
from repros.diagnose.match.wrappers import LogLine

MOST_OPEN = 8
"""Tracebacks read side by side; one more and the oldest is dropped."""
MOST_LINES = 5_000
"""Lines of one traceback; the deepest recursion that Python allows prints fewer."""
MOST_WAITING = 8
"""Chains that a reader keeps before it looks for finished ones; the open tracebacks keep one more each."""
MOST_LINKS = 100
"""Exceptions of one chain; the next one begins a new chain."""
_MOST_FOREIGN_LINES = 60
"""Lines of other writers between two lines of one traceback."""

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_INNER = "terminated with the following error:"
_GROUP_MEMBER = re.compile(r"[ |]*\+-?\+?-{10,40} (?:\d+|\.\.\.) -{10,40}$")
_MESSAGE_END = re.compile(r"[-=_*]{3}|`{3}|FAILED |Process |[ |]*\+-{3}")
_PARAGRAPH_INDENT = 4
"""Columns; after a blank line, only lines indented this far still belong to the message."""


class TracebackReader:
    """A reader of one writer's lines, in order."""

    def __init__(self, *, pytest: bool) -> None:
        """Prepare to read, with pytest's format only if the log has it: ordinary lines resemble it."""
        self._chains: list[list[PartialException]] = []
        self._pytest = pytest
        self._open: list[OpenTraceback] = []
        self._closed: deque[list[str]] = deque(maxlen=MOST_OPEN)
        self._newest: ChainLinkTarget | None = None
        """The last exception read; the next one becomes its inner exception."""
        self._is_message_open = False
        """Whether the next line may continue its message."""
        self._next_target: ChainLinkTarget | None = None
        """What the log says about the next exception's place in a chain."""
        self._pytest_frames: deque[str] = deque(maxlen=MOST_LINES)
        self._pytest_function = ""
        self._in_group = False
        self._in_box = False
        self._unread: LogLine | None = None
        """The last line, if it belongs to nothing: a log may be cut to the statement that raises."""

    def take_finished(self) -> list[list[PartialException]]:
        """Return the chains that no further line can change, and forget them; none as long as they are few."""
        if len(self._chains) <= MOST_WAITING:
            return []
        targets = (self._newest, self._next_target, *(traceback.target for traceback in self._open))
        alive = {id(target.chain) for target in targets if target is not None}
        finished = [chain for chain in self._chains if id(chain) not in alive]
        self._chains = [chain for chain in self._chains if id(chain) in alive]
        return finished

    def take_all(self) -> list[list[PartialException]]:
        """Return all chains that are left; the reader has read its last line."""
        for traceback in self._open:
            if found := traceback.parse_raise():
                exception = PartialException(
                    found[0], traceback.end, traceback.frames, not traceback.is_headless, has_log_prefix=False
                )
                self._add_exception(exception, found[1], traceback.target)
        self._open.clear()
        if self._unread and (found := parse_raise(self._unread.text)):
            line = self._unread
            exception = PartialException(
                found[0], line.number, [], has_traceback=False, has_log_prefix=line.has_log_prefix
            )
            self._add_exception(exception, found[1], self._next_target)
        return self._chains

    def read_line(self, line: LogLine) -> None:
        """Read the next line."""
        text = line.text
        if self._pytest:
            if text.startswith("E  "):
                unmarked = text[4:] if text.startswith("E   ") else text[1:].lstrip()
                self._read_unboxed(line._replace(text=unmarked), from_pytest=True)
                return
            self._read_pytest_location(text)
        self._in_box = False
        if self._in_group:
            head, bar, tail = text.partition("|")
            self._in_box = bool(bar) and not head.strip()
            if self._in_box:
                line = line._replace(text=tail.removeprefix(" "))
        self._read_unboxed(line, from_pytest=False)

    def _read_unboxed(self, line: LogLine, *, from_pytest: bool) -> None:
        """Read a line without the box of an exception group; `from_pytest`: pytest marked it as part of an error."""
        text = line.text
        self._unread = None
        if traceback_lines.HEADER in text and self._open_traceback(text):
            return
        if self._open and self._extend_traceback(line):
            return
        if self._read_connector(text):
            return
        if self._open_headless_traceback(line):
            return
        if self._is_message_open and self._newest is not None:
            self._is_message_open = self._extend_message(line, self._newest.exception)
            if self._is_message_open:
                return
        if text.startswith("FAILED "):
            text = text.partition(" - ")[2]
        if found := traceback_lines.parse_exception(text):
            frames = list(self._pytest_frames) if from_pytest else []
            exception = PartialException(found[0], line.number, frames, bool(frames), line.has_log_prefix)
            self._add_exception(exception, found[1], self._next_target)
            if from_pytest:
                self._pytest_frames.clear()
        else:
            self._unread = line

    def _open_traceback(self, text: str) -> bool:
        """Open a traceback if the line is the header of one; return whether it is."""
        head, _, tail = text.partition(traceback_lines.HEADER)
        head, tail = head.rstrip(), tail.strip()
        if kind := traceback_lines.parse_notebook_header(text):
            traceback = OpenTraceback(consume_notebook, kind)
            self._open.clear()  # a notebook has one writer, and an open traceback would consume every later line
        elif tail == ":":
            traceback = OpenTraceback(consume_python)
            self._in_group = head.endswith("+ Exception Group") or (self._in_group and self._in_box)
            if head.endswith("Original"):  # a DataLoader worker's traceback is part of the outer exception's message
                self._next_target = self._newest and self._newest._replace(via="cause")
        elif tail and not tail.strip("─╮-+ "):
            traceback = OpenTraceback(consume_rich)
        else:
            return False
        traceback.target, self._next_target, self._is_message_open = self._next_target, None, False
        self._open.append(traceback)
        del self._open[:-MOST_OPEN]
        return True

    def _open_headless_traceback(self, line: LogLine) -> bool:
        """Open a traceback at a frame whose traceback has no header: people paste the end of a log."""
        if self._open or not traceback_lines.parse_python_frame(line.text):
            return False
        self._open.append(OpenTraceback(consume_python, is_headless=True, target=self._next_target))
        self._next_target, self._is_message_open = None, False
        return self._extend_traceback(line)

    def _extend_traceback(self, line: LogLine) -> bool:
        """Add the line to the open traceback that it belongs to; return False if it belongs to none."""
        text = line.text
        answers = [(traceback, traceback.consume(traceback, text)) for traceback in reversed(self._open)]
        takers = [(traceback, consumed) for traceback, consumed in answers if consumed is not None]
        if not takers:
            for traceback in self._open:
                traceback.foreign_lines += 1
            self._open = [traceback for traceback in self._open if traceback.foreign_lines <= _MOST_FOREIGN_LINES]
            return False
        repeat = self._find_repeat(takers, text)
        # A traceback that has only repeated another one so far continues to: any other line is not its.
        traceback, consumed = repeat or next((taker for taker in takers if not taker[0].is_repeat), takers[0])
        traceback.is_repeat = repeat is not None and (traceback.is_repeat or not traceback.lines)
        traceback.add_line(text, consumed)
        traceback.end = line.number
        self._open.remove(traceback)
        if consumed.exception is not None:
            self._closed.append(traceback.lines)
            name, message = consumed.exception
            frames = traceback.frames
            is_whole = bool(frames) and not traceback.is_headless
            exception = PartialException(name, line.number, frames, is_whole, line.has_log_prefix)
            self._add_exception(exception, message, traceback.target)
        elif len(traceback.lines) <= MOST_LINES:
            self._open.append(traceback)  # to the end of the list: the last writer is likely to write the next line
        return True

    def _find_repeat(
        self, takers: Sequence[tuple[OpenTraceback, Consumed]], text: str
    ) -> tuple[OpenTraceback, Consumed] | None:
        """Return the traceback that has reached the point where another one has the same line."""
        for traceback, consumed in takers if len(takers) > 1 else ():
            at = len(traceback.lines)
            others = [*(other.lines for other in self._open if other is not traceback), *self._closed]
            if any(at < len(lines) and lines[at] == text for lines in others):
                return traceback, consumed
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
            chain.insert(next(place for place, linked in enumerate(chain) if linked is target.exception), exception)
        else:
            chain = target.chain
            exception.via = target.via
            chain.append(exception)
        self._next_target = None
        self._newest = ChainLinkTarget(exception, chain, is_outer=False, via="")
        self._is_message_open = message is not None

    def _read_connector(self, text: str) -> bool:
        """Read a line between two exceptions of a chain: how the next one is linked to the last."""
        if self._newest is None or not text:
            return False
        if text.endswith(_CAUSE):
            is_outer, via = True, "cause"
        elif text.endswith(_CONTEXT):
            is_outer, via = True, "context"
        elif text.endswith(_INNER):
            is_outer, via = False, "cause"
        elif self._in_group and _GROUP_MEMBER.match(text):
            is_outer, via = False, "group"
        else:
            return False
        self._next_target = self._newest._replace(is_outer=is_outer, via=via)
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
        if _MESSAGE_END.match(text) or traceback_lines.parse_exception(text):
            return False
        if self._pytest and traceback_lines.match_pytest_location(text):
            return False
        exception.ends_with_blank = False
        return exception.add_line(text)

    def _read_pytest_location(self, text: str) -> None:
        """Collect the frames of pytest's format, where a frame's file and line follow its source."""
        if function := traceback_lines.parse_definition(text):
            self._pytest_function = function
        elif location := traceback_lines.match_pytest_location(text):
            function = location["function"] or self._pytest_function or "<module>"
            frame = f"{location['file']}:{location['line']} {function}"
            if location["type"] and self._newest:
                self._newest.exception.frames.append(frame)
                self._pytest_frames.clear()
            else:
                self._pytest_frames.append(frame)
        elif text.startswith("____"):
            self._pytest_frames.clear()
