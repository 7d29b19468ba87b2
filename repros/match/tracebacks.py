"""One writer's lines -> the chains of exceptions that it told of.

Several ranks may write to one stream without saying which line is whose. They run the same program, so their tracebacks
agree from the top: a line that repeats what one of them wrote belongs to another that has come just that far.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

from repros.match import dialects
from repros.match.failures import Draft, Standing
from repros.match.unfinished import Taken, Unfinished, depth, notebook, python, rich
from repros.match.wrappers import Line

MOST_OPEN = 8
"""Tracebacks that are read side by side; of more the oldest is given up."""
MOST_LINES = 5_000
"""Lines of one traceback; the deepest recursion that Python allows prints fewer."""
MOST_LINKS = 100
"""Exceptions of one chain; what follows begins another."""
_MOST_FOREIGN = 60
"""Lines of somebody else's between two of a traceback."""

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_INNER = "terminated with the following error:"
_MEMBER = re.compile(r"[ |]*\+-?\+?-{10,40} (?:\d+|\.\.\.) -{10,40}$")
_RULE = re.compile(r"[-=_*]{3}|`{3}|FAILED |Process |[ |]*\+-{3}")
_DEEP = 4
"""Columns; a paragraph of a message that follows a blank line is told from the rest of the log by its indentation."""


class Reader:
    """Reads one writer's lines in their order."""

    def __init__(self, *, pytest: bool) -> None:
        """Look for pytest's form of tracebacks only where there is one."""
        self.chains: list[list[Draft]] = []
        self._pytest = pytest
        self._open: list[Unfinished] = []
        self._closed: deque[list[str]] = deque(maxlen=MOST_OPEN)
        self._newest: Standing | None = None
        """The exception that was told last, as one that the next is enclosed in."""
        self._talking = False
        """Whether more lines of its message may come."""
        self._pending: Standing | None = None
        self._places: deque[str] = deque(maxlen=MOST_LINES)
        self._function = ""
        self._in_group = False
        self._boxed = False

    def feed(self, line: Line) -> None:
        """Take the next line."""
        text = line.text
        if self._pytest:
            if text.startswith("E  "):
                self._plain(line._replace(text=text[4:] if text.startswith("E   ") else text[1:].lstrip()), said=True)
                return
            self._place(text)
        self._boxed = False
        if self._in_group:
            head, bar, tail = text.partition("|")
            self._boxed = bool(bar) and not head.strip()
            if self._boxed:
                line = line._replace(text=tail.removeprefix(" "))
        self._plain(line, said=False)

    def _plain(self, line: Line, *, said: bool) -> None:
        """Take a line that is free of boxes; `said` by pytest."""
        text = line.text
        if dialects.HEADER in text and self._begin(text):
            return
        if self._open and self._offer(line):
            return
        if self._connect(text):
            return
        if self._talking and self._newest is not None:
            self._talking = self._continue(line, self._newest.to)
            if self._talking:
                return
        if text.startswith("FAILED "):
            text = text.partition(" - ")[2]
        if found := dialects.last(text):
            frames = [*self._places] if said else []
            self._tell(Draft(found[0], line.number, frames, bool(frames), line.stamped), found[1], self._pending)
            if said:
                self._places.clear()

    def _begin(self, text: str) -> bool:
        """Open a traceback if the line is the head of one."""
        head, _, tail = text.partition(dialects.HEADER)
        head, tail = head.rstrip(), tail.strip()
        if kind := dialects.notebook_type(text):
            traceback = Unfinished(notebook, kind)
            self._open.clear()  # a notebook has one writer, and what is open would get all that follows
        elif tail == ":":
            traceback = Unfinished(python)
            self._in_group = head.endswith("+ Exception Group") or (self._in_group and self._boxed)
            if head.endswith("Original"):  # a loader's worker tells in its message where it failed
                self._pending = self._newest and self._newest._replace(via="cause")
        elif tail and not tail.strip("─╮-+ "):
            traceback = Unfinished(rich)
        else:
            return False
        traceback.standing, self._pending, self._talking = self._pending, None, False
        self._open.append(traceback)
        del self._open[:-MOST_OPEN]
        return True

    def _offer(self, line: Line) -> bool:
        """Give the line to the open traceback that it belongs to."""
        text = line.text
        answers = [(traceback, traceback.read(traceback, text)) for traceback in reversed(self._open)]
        takers = [(traceback, taken) for traceback, taken in answers if taken is not None]
        if not takers:
            for traceback in self._open:
                traceback.foreign += 1
            self._open = [traceback for traceback in self._open if traceback.foreign <= _MOST_FOREIGN]
            return False
        follower = self._follower(takers, text)
        # Who only repeated another one so far will go on to: any other line is somebody else's.
        traceback, taken = follower or next((taker for taker in takers if not taker[0].follows), takers[0])
        traceback.follows = follower is not None and (traceback.follows or not traceback.lines)
        traceback.take(text, taken)
        self._open.remove(traceback)
        if taken.last is not None:
            self._closed.append(traceback.lines)
            name, message = taken.last
            frames = traceback.frames
            self._tell(Draft(name, line.number, frames, bool(frames), line.stamped), message, traceback.standing)
        elif len(traceback.lines) <= MOST_LINES:
            self._open.append(traceback)  # to the end: who wrote last is likely to write next
        return True

    def _follower(self, takers: Sequence[tuple[Unfinished, Taken]], text: str) -> tuple[Unfinished, Taken] | None:
        """Return the traceback that has come to where another one has this very line."""
        for traceback, taken in takers if len(takers) > 1 else ():
            at = len(traceback.lines)
            others = [*(other.lines for other in self._open if other is not traceback), *self._closed]
            if any(at < len(lines) and lines[at] == text for lines in others):
                return traceback, taken
        return None

    def _tell(self, draft: Draft, message: str | None, standing: Standing | None) -> None:
        """Add an exception to the chain that it belongs to."""
        draft.add(message or "")
        if standing is None or len(standing.chain) >= MOST_LINKS:
            chain = [draft]
            self.chains.append(chain)
        elif standing.outer:
            chain = standing.chain
            draft.via, standing.to.via = standing.to.via, standing.via
            chain.insert(next(place for place, one in enumerate(chain) if one is standing.to), draft)
        else:
            chain = standing.chain
            draft.via = standing.via
            chain.append(draft)
        self._pending = None
        self._newest = Standing(draft, chain, outer=False, via="")
        self._talking = message is not None

    def _connect(self, text: str) -> bool:
        """Note how the next exception stands to the last one."""
        if self._newest is None or not text:
            return False
        if text.endswith(_CAUSE):
            outer, via = True, "cause"
        elif text.endswith(_CONTEXT):
            outer, via = True, "context"
        elif text.endswith(_INNER):
            outer, via = False, "cause"
        elif self._in_group and _MEMBER.match(text):
            outer, via = False, "group"
        else:
            return False
        self._pending = self._newest._replace(outer=outer, via=via)
        self._talking = False
        return True

    def _continue(self, line: Line, draft: Draft) -> bool:
        """Take a further line of a message; False at its end."""
        text = line.text
        if not text:
            draft.blank = True
            return True
        ends = (line.stamped and not draft.stamped) or (draft.blank and not draft.empty and depth(text) < _DEEP)
        if ends or _RULE.match(text) or dialects.last(text) or (self._pytest and dialects.pytest_place(text)):
            return False
        draft.blank = False
        return draft.add(text)

    def _place(self, text: str) -> None:
        """Note where pytest says the frames are."""
        if function := dialects.definition(text):
            self._function = function
        elif place := dialects.pytest_place(text):
            frame = f"{place['file']}:{place['line']} {place['function'] or self._function or '<module>'}"
            if place["type"] and self._newest:
                self._newest.to.frames.append(frame)
                self._places.clear()
            else:
                self._places.append(frame)
        elif text.startswith("____"):
            self._places.clear()


def read(lines: Iterable[Line], *, pytest: bool) -> list[list[Draft]]:
    """Return the chains of exceptions that one writer's lines tell of."""
    reader = Reader(pytest=pytest)
    for line in lines:
        reader.feed(line)
    return reader.chains
