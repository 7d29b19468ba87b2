"""Exceptions and exception chains found in a log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from repros.diagnose.match.traceback_lines import base_names, qualified_name
from repros.model import Raised

_RANK = re.compile(r"\brank:? ?(?=\d)")
LONGEST_MESSAGE = 20_000
"""Characters, as the engine records them."""
MOST_MESSAGE_LINES = 60


@dataclass(frozen=True)
class Link:
    """One exception of a chain."""

    raised: Raised
    line: int
    """The line of the log that names its class."""
    has_traceback: bool
    """Whether its whole traceback was read, and not only its last line."""
    has_class: bool = True
    """Whether the log names its class; otherwise the class is that of the repro with this message."""


@dataclass(frozen=True)
class Failure:
    """One exception chain, outermost first."""

    links: tuple[Link, ...]
    labels: tuple[str, ...]
    """The labels of the processes that wrote it: several if ranks failed alike, empty if the log has no labels."""

    @property
    def frames(self) -> Iterator[str]:
        """Every frame of the chain."""
        return (frame for link in self.links for frame in link.raised.frames)

    @property
    def writers(self) -> tuple[str, ...]:
        """The labels with the rank in one spelling: `rank 1` for torch's `rank1` and Lightning's `rank: 1`."""
        return tuple(_RANK.sub("rank ", label) for label in self.labels)


@dataclass
class PartialException:
    """An exception whose lines are still being read."""

    type: str
    line: int
    frames: list[str]
    has_traceback: bool
    has_log_prefix: bool
    """Whether a logger wrote the line with its class."""
    message: list[str] = field(default_factory=list)
    via: str | None = None
    ends_with_blank: bool = False
    """Whether the last line read was blank."""
    size: int = 0

    def add_line(self, text: str) -> bool:
        """Add a line to the message; return False if the message is full."""
        if len(self.message) >= MOST_MESSAGE_LINES or self.size > LONGEST_MESSAGE:
            return False
        self.message.append(text)
        self.size += len(text) + 1
        return True

    @property
    def has_message(self) -> bool:
        """Whether a line of the message with text in it was read."""
        return any(self.message)

    def to_link(self) -> Link:
        """Return the exception with the message read so far."""
        text = "\n".join(self.message).strip()[:LONGEST_MESSAGE]
        raised = Raised(qualified_name(self.type), base_names(self.type), text, tuple(self.frames), self.via)
        return Link(raised, self.line, self.has_traceback)


class ChainLinkTarget(NamedTuple):
    """How the next exception is linked to one already read."""

    exception: PartialException
    """The one already read."""
    chain: list[PartialException]
    is_outer: bool
    """Whether the next one is the outer of the two."""
    via: str
