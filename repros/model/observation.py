"""Observations: how a cell's run ended, process by process, before it is judged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Ending(StrEnum):
    """How one process ended."""

    RETURNED = "returned"
    """The script ran to its end; what the interpreter does at its exit does not count."""
    RAISED = "raised"
    """An exception left the script."""
    EXITED = "exited"
    """A non-zero exit code without an exception: `sys.exit(3)`, `os._exit(3)`."""
    SIGNALLED = "signalled"
    """Ended by a signal that the engine did not send."""
    TIMED_OUT = "timed out"
    """Still running at the cell's deadline, or when the cell was seen to hang as documented; its stacks were taken."""
    STOPPED = "stopped"
    """A rank that the engine ended because it outlived the main process."""


@dataclass(frozen=True)
class Raised:
    """One exception of a chain."""

    type: str
    """Dotted class name."""
    bases: tuple[str, ...]
    """Dotted names of its base classes, nearest first."""
    message: str
    frames: tuple[str, ...]
    """`file:line function`, outermost first."""
    via: str | None = None
    """How the one before it refers to this one: `cause`, `context`, `group`; None for the outermost."""

    @property
    def name(self) -> str:
        """The class name as Python prints it: builtins bare, the others dotted."""
        return self.type.removeprefix("builtins.")


class ProcessRole(StrEnum):
    """What a process is within its cell."""

    MAIN = "main"
    """Started by the engine."""
    LEADER = "leader"
    """Forked by a warm server; launches the ranks as torchrun's agent does."""
    RANK = "rank"
    """Launched, spawned or forked by the main process or the leader."""
    HELPER = "helper"
    """Any other process, such as a data loader's worker."""


class Launch(StrEnum):
    """How a cell is started."""

    WARM = "warm"
    """Forked from a server that has imported the libraries: fast."""
    COLD = "cold"
    """`python script.py`, as a user would."""


@dataclass(frozen=True)
class Process:
    """One process of a cell."""

    pid: int
    role: ProcessRole
    rank: int | None
    """Global rank; None for a process without a rank, such as the launcher of spawned ranks."""
    ending: Ending
    code: int | None = None
    """Exit code, for `exited`."""
    signal: str | None = None
    """Signal name, for `signalled`."""
    chain: tuple[Raised, ...] = ()
    """The exception chain, outermost first, for `raised`."""
    world_size: int | None = None
    """Size of the default process group that it joined; None if it joined none."""
    at: float = 0.0
    """Seconds from the cell's start to this ending."""
    processor: float = 0.0
    """Seconds of processor time up to its last event: its own and that of the children that it waited for. It is 0 for
    a child that another process of the cell waited for."""
    stacks: str = ""
    """Python stacks of every thread, taken at the deadline, at a hang or at a fatal signal."""
    log: Path | None = None
    """What it wrote to stdout and stderr."""

    @property
    def name(self) -> str:
        """`rank 1`, `launcher`, or `helper 4711`."""
        if self.rank is not None:
            return f"rank {self.rank}"
        return "launcher" if self.role in {ProcessRole.MAIN, ProcessRole.LEADER} else f"{self.role} {self.pid}"


_FAILURES = {Ending.RAISED, Ending.EXITED, Ending.SIGNALLED}


@dataclass(frozen=True)
class Observation:
    """Everything seen of one run of a cell."""

    processes: tuple[Process, ...]
    seconds: float
    folder: Path
    """The folder of the logs and the raw events."""
    launch: Launch = Launch.COLD
    broken: str | None = None
    """Why the run says nothing about the repro: the engine could not do its work."""
    leftovers: int = 0
    """Processes that outlived the main process and had to be ended, ranks not counted."""
    standstill: str | None = None
    """Which evidence showed a documented hang before the deadline."""

    @property
    def processor(self) -> float:
        """Seconds of processor time of all processes; those that were killed count up to their last event."""
        return sum(process.processor for process in self.processes)

    @property
    def ranks(self) -> Iterator[Process]:
        """The processes whose ending counts: no helpers, and the engine's own leader only if it failed."""
        return (
            process
            for process in self.processes
            if process.role in {ProcessRole.MAIN, ProcessRole.RANK}
            or (process.role is ProcessRole.LEADER and process.ending in _FAILURES)
        )


_PACKAGES = re.compile(r".*/(?:site|dist)-packages/|.*/lib/python3\.\d+/")


def path_in_package(path: str) -> str:
    """Return a file's path without the folder of installed packages, or of the standard library, that it is in."""
    return _PACKAGES.sub("", path)
