"""Failures in a log: exception chains, their call stacks, and the known base classes of their exceptions."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from repros.model import Raised

LONGEST_MESSAGE = 20_000
"""Characters, as the engine records them."""
MOST_MESSAGE_LINES = 60
_RANK = re.compile(r"\brank:? ?(?=\d)")

# The base classes that a signature may name for an exception class that is not a builtin.
# Sources: torch/csrc/Exceptions.cpp and torch/multiprocessing/spawn.py.
_FOREIGN_BASES = {
    "AcceleratorError": ("builtins.RuntimeError",),
    "DistBackendError": ("torch.distributed.DistError", "builtins.RuntimeError"),
    "DistError": ("builtins.RuntimeError",),
    "DistNetworkError": ("torch.distributed.DistError", "builtins.RuntimeError"),
    "DistStoreError": ("torch.distributed.DistError", "builtins.RuntimeError"),
    "LinAlgError": ("builtins.RuntimeError",),
    "OutOfMemoryError": ("builtins.RuntimeError",),
    "ProcessExitedException": ("torch.multiprocessing.spawn.ProcessException",),
    "ProcessRaisedException": ("torch.multiprocessing.spawn.ProcessException",),
    "UnpicklingError": ("_pickle.PickleError",),
}


@dataclass(frozen=True)
class ChainLink:
    """One exception of a chain."""

    raised: Raised
    line: int
    """The line of the log that names its class."""
    has_traceback: bool
    """Whether its complete traceback was parsed, not only the last line."""
    has_class: bool = True
    """Whether the log names its class; otherwise the class is that of the repro with this message."""
    code: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The line of code of each frame of which the log has it."""


@dataclass(frozen=True)
class LogFailure:
    """One exception chain, outermost first."""

    links: tuple[ChainLink, ...]
    labels: tuple[str, ...]
    """The labels of the processes that wrote it: several if ranks failed alike, empty if the log has no labels."""

    @property
    def writers(self) -> tuple[str, ...]:
        """The labels with the rank in one spelling: `rank 1` for torch's `rank1` and Lightning's `rank: 1`."""
        return tuple(_RANK.sub("rank ", label) for label in self.labels)

    @cached_property
    def call_stack(self) -> CallStack:
        """The frames of all its exceptions."""
        return CallStack(frame for link in self.links for frame in link.raised.frames)


class CallStack:
    """Frames, indexed by function."""

    def __init__(self, frames: Iterator[str]) -> None:
        self._by_function: dict[str, dict[str, str]] = {}
        """For each function, its frames by file path: a leading slash, and slashes in place of backslashes."""
        for frame in frames:
            location, _, function = frame.rpartition(" ")
            file = "/" + location.rpartition(":")[0].replace("\\", "/")
            self._by_function.setdefault(function, {}).setdefault(file, frame)

    def find_name(self, name: str) -> str:
        """Return the frame of the function `new_forward` or `accelerate/hooks.py:new_forward`; empty if absent."""
        file, _, function = name.rpartition(":")
        frames = self._by_function.get(function, {}).items()
        return next((frame for path, frame in frames if not file or path.endswith(f"/{file}")), "")

    def find_script(self, name: str) -> str:
        """Return a frame in the file with this name; empty if absent."""
        files = (item for files in self._by_function.values() for item in files.items())
        return next((frame for path, frame in files if path.endswith(f"/{name}")), "")

    def find_call(self, call: str) -> str:
        """Return the frame of a call, `PART_OF_PATH` or `PART_OF_PATH:START_OF_FUNCTION`; empty if absent."""
        part, _, start = call.partition(":")
        functions = (files for name, files in self._by_function.items() if name.startswith(start))
        return next((frame for files in functions for path, frame in files.items() if part in path), "")


@dataclass
class PartialException:
    """An exception of which not all lines have been parsed yet."""

    type: str
    line: int
    frames: list[str]
    has_traceback: bool
    has_log_prefix: bool
    """Whether a logger wrote the line with its class."""
    code: dict[str, str] = field(default_factory=dict)
    """The line of code of each frame of which the log has it."""
    message: list[str] = field(default_factory=list)
    via: str | None = None
    ends_with_blank: bool = False
    """Whether the last parsed line was blank."""
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
        """Whether a message line is not empty."""
        return any(self.message)

    def to_link(self) -> ChainLink:
        """Return the exception with the message parsed so far."""
        text = "\n".join(self.message).strip()[:LONGEST_MESSAGE]
        raised = Raised(_qualified_name(self.type), _base_names(self.type), text, tuple(self.frames), self.via)
        return ChainLink(raised, self.line, self.has_traceback, code=self.code)


class ChainLinkTarget(NamedTuple):
    """How the next exception is linked to one that was already parsed."""

    exception: PartialException
    """The one that was already parsed."""
    chain: list[PartialException]
    is_outer: bool
    """Whether the next one is the outer of the two."""
    via: str


def _builtin_exception(name: str) -> type[BaseException] | None:
    builtin = getattr(builtins, name, None)
    return builtin if isinstance(builtin, type) and issubclass(builtin, BaseException) else None


def _base_names(name: str) -> tuple[str, ...]:
    """Return the qualified names of the known base classes of an exception, nearest first."""
    if builtin := _builtin_exception(name):
        return tuple(f"builtins.{base.__name__}" for base in builtin.__mro__[1:-1])
    return (*_FOREIGN_BASES.get(name.rpartition(".")[2], ()), "builtins.Exception")


def _qualified_name(name: str) -> str:
    """Return an exception's name with its module, which Python omits for builtin classes."""
    return f"builtins.{name}" if _builtin_exception(name) else name
