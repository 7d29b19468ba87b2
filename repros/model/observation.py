"""Observations: how a run ended, process by process, before it is judged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from repros.model.raised import Ending, Raised


class ProcessRole(StrEnum):
    """The role of a process within a run."""

    MAIN = "main"
    """Started by the engine."""
    LEADER = "leader"
    """Forked by a warm server; launches the ranks as torchrun's agent does."""
    RANK = "rank"
    """Launched, spawned or forked by the main process or the leader."""
    HELPER = "helper"
    """Any other process, such as a data loader's worker."""


class Launch(StrEnum):
    """How a run is launched."""

    WARM = "warm"
    """Forked from a server that has already imported the libraries."""
    COLD = "cold"
    """Started as `python script.py`."""


@dataclass(frozen=True)
class Process:
    """One process of a run."""

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
    """World size of the default process group; None if it joined none."""
    at: float = 0.0
    """Seconds from the start of the run to this ending."""
    processor: float = 0.0
    """CPU seconds up to its last event, including children that it waited for; 0 if another process of the run waited
    for this one, which then counts them."""
    stacks: str = ""
    """Python stacks of all threads, dumped at the deadline, at a hang or at a fatal signal."""
    log: Path | None = None
    """Its stdout and stderr."""

    @property
    def name(self) -> str:
        """`rank 1`, `launcher`, or `helper 4711`."""
        if self.rank is not None:
            return f"rank {self.rank}"
        return "launcher" if self.role in {ProcessRole.MAIN, ProcessRole.LEADER} else f"{self.role} {self.pid}"


_FAILURES = {Ending.RAISED, Ending.EXITED, Ending.SIGNALLED}


@dataclass(frozen=True)
class Observation:
    """Everything observed of one run of a job."""

    processes: tuple[Process, ...]
    seconds: float
    folder: Path
    """Folder of logs and raw events."""
    launch: Launch = Launch.COLD
    broken: str | None = None
    """Why the run shows nothing about the program: the engine could not do its work."""
    leftovers: int = 0
    """Processes that outlived the main process and had to be ended, ranks not counted."""
    deadlock: str | None = None
    """The evidence of a deadlock of the ranks before the deadline."""
    damaged: tuple[str, ...] = ()
    """The files and lines of the run's records that were skipped, and why."""

    @property
    def processor(self) -> float:
        """CPU seconds of all processes; killed ones count up to their last event."""
        return sum(process.processor for process in self.processes)

    @property
    def ranks(self) -> Iterator[Process]:
        """The processes whose ending counts: no helpers, and the leader only if it failed."""
        return (
            process
            for process in self.processes
            if process.role in {ProcessRole.MAIN, ProcessRole.RANK}
            or (process.role is ProcessRole.LEADER and process.ending in _FAILURES)
        )


_PACKAGES = re.compile(r".*/(?:site|dist)-packages/|.*/lib/python3\.\d+/")


def path_in_package(path: str) -> str:
    """Return a path relative to its `site-packages` or standard library folder: `torch/nn/modules/module.py`."""
    return _PACKAGES.sub("", path)
