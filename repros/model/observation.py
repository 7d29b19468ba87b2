"""How a cell's run ended, process by process, as seen and before it is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Ending(StrEnum):
    """How one process ended."""

    RETURNED = "returned"
    """The script ran to its end; what the interpreter did on its way out does not matter."""
    RAISED = "raised"
    """An exception left the script."""
    EXITED = "exited"
    """A non-zero exit code without an exception: `sys.exit(3)`, `os._exit(3)`."""
    SIGNALLED = "signalled"
    """Ended by a signal that the engine did not send."""
    TIMED_OUT = "timed out"
    """Still running at the cell's deadline; its stacks were taken."""
    STOPPED = "stopped"
    """A rank still running when the main process had ended, ended by the engine."""


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


@dataclass(frozen=True)
class Process:
    """One process of a cell."""

    pid: int
    role: str
    """`main` (started by the engine), `rank` (launched or spawned by it), `helper` (neither); `leader`, where a warm
    server's process launched the ranks."""
    rank: int | None
    """Global rank; None for a process that is none, such as the launcher of spawned ranks."""
    ending: Ending
    code: int | None = None
    """Exit code, for `exited`."""
    signal: str | None = None
    """Signal name, for `signalled`."""
    chain: tuple[Raised, ...] = ()
    """The exception and what it came from, outermost first, for `raised`."""
    world_size: int | None = None
    """Size of the default process group that it joined; None when it joined none."""
    at: float = 0.0
    """Seconds from the cell's start to this ending."""
    stacks: str = ""
    """Python stacks of every thread, taken at the deadline or at a fatal signal."""
    log: Path | None = None
    """What it wrote to stdout and stderr."""

    @property
    def name(self) -> str:
        """`rank 1`, `launcher`, or `helper 4711`."""
        if self.rank is not None:
            return f"rank {self.rank}"
        return "launcher" if self.role in {"main", "leader"} else f"{self.role} {self.pid}"


_BEFALLEN = {Ending.RAISED, Ending.EXITED, Ending.SIGNALLED}


@dataclass(frozen=True)
class Observation:
    """Everything seen of one run of a cell."""

    processes: tuple[Process, ...]
    seconds: float
    folder: Path
    """Where the logs and the raw events lie."""
    launch: str = "cold"
    """`cold`: `python script.py`, as a user would."""
    broken: str | None = None
    """Why the run says nothing about the repro, when the engine itself could not do its work."""
    leftovers: int = 0
    """Processes that outlived the main process and had to be ended, ranks not counted."""

    @property
    def ranks(self) -> Iterator[Process]:
        """The processes whose ending matters: no helpers, and the engine's own launcher only if something befell it."""
        return (
            process
            for process in self.processes
            if process.role in {"main", "rank"} or (process.role == "leader" and process.ending in _BEFALLEN)
        )
