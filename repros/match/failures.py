"""What was found in a log: exceptions, the chains they form, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from repros.match.dialects import bases, dotted
from repros.model import Raised

LONGEST_MESSAGE = 20_000
"""Characters, as the engine records them."""
MOST_MESSAGE_LINES = 60


@dataclass(frozen=True)
class Link:
    """One exception of a chain."""

    raised: Raised
    line: int
    """The line of the log that names its class."""
    whole: bool
    """Whether its traceback stands above it from its beginning."""


@dataclass(frozen=True)
class Failure:
    """One chain of exceptions, outermost first."""

    links: tuple[Link, ...]
    labels: tuple[str, ...]
    """Who wrote it; several where ranks failed alike, empty where nothing says."""

    @property
    def frames(self) -> Iterator[str]:
        """Every frame of the chain."""
        return (frame for link in self.links for frame in link.raised.frames)


@dataclass
class Draft:
    """An exception while its lines are still coming."""

    type: str
    line: int
    frames: list[str]
    whole: bool
    stamped: bool
    message: list[str] = field(default_factory=list)
    via: str | None = None
    blank: bool = False
    """Whether the last line was a blank one."""
    size: int = 0

    def add(self, text: str) -> bool:
        """Take one more line of the message, if there is room."""
        if len(self.message) >= MOST_MESSAGE_LINES or self.size > LONGEST_MESSAGE:
            return False
        self.message.append(text)
        self.size += len(text) + 1
        return True

    @property
    def empty(self) -> bool:
        """Whether no word of the message has come yet."""
        return not any(self.message)

    def link(self) -> Link:
        """Return the exception as it is now."""
        text = "\n".join(self.message).strip()[:LONGEST_MESSAGE]
        raised = Raised(dotted(self.type), bases(self.type), text, tuple(self.frames), self.via)
        return Link(raised, self.line, self.whole)


class Standing(NamedTuple):
    """How the next exception will stand to one that was told."""

    to: Draft
    chain: list[Draft]
    outer: bool
    """Whether the next one encloses it, or is enclosed."""
    via: str
