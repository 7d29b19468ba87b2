"""What was seen of a script on one stack: how it ended, with its signature, and where each rank was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import assert_never

import repros
from repros.engine.launch import logs
from repros.engine.launch.stacks import threads
from repros.engine.signature import describe, normalise
from repros.model import CellResult, Ending, Process, ProcessRole, Raised, Verdict
from repros.model.observation import path_in_package

_INNERMOST = 3
"""Frames of an exception that belong to its signature."""
_LAST_LINES = 5
_NO_LAUNCHER = "environment variable RANK expected"
_RAN_OUT = "memory, disk, ports or files ran out, by --memory or --file-size, or on this machine"
_OWN = f"{Path(repros.__file__).parent}/"
_HIDDEN = ("<", _OWN)
"""The beginnings of paths that are no place in the script or in a library."""


class Status(StrEnum):
    """How a script ended on a stack."""

    CLEAN = "clean"
    EXCEPTION = "exception"
    EXIT = "exit"
    """An exit code other than zero."""
    SIGNAL = "signal"
    HANG = "hang"
    """All ranks were seen to wait for each other."""
    TIME_LIMIT = "time limit"
    """It still ran, and nobody knows whether it would have ended."""
    INCOMPLETE = "incomplete"
    """Fewer ranks took part than were asked for."""
    NOT_JUDGED = "not judged"
    """The engine could not do its work."""
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Place:
    """Where a rank was when the run was over."""

    rank: str
    """`rank 1`."""
    ending: str
    """`waits`, `still running`, `returned`, `raised`, ..."""
    call: str | None = None
    """`all_reduce (torch/distributed/distributed_c10d.py:2806)`: its innermost call, if it still ran."""
    called_at: str | None = None
    """`train.py:14 main`: where the script made it."""


@dataclass(frozen=True)
class Link:
    """One exception of the chain that a script ended with."""

    type: str
    message: str
    frames: tuple[str, ...]
    """The innermost, and before them that of the script: `torch/nn/functional.py:2546 layer_norm`."""
    via: str | None
    """How the one before it refers to this one: `cause`, `context`, `group`; None for the first."""


@dataclass(frozen=True)
class Sight:
    """What was seen."""

    status: Status
    signature: str | None
    """`RuntimeError: mat1 and mat2 ...`, `hang`, `exit 3`, `signal SIGSEGV`: the same text on every machine."""
    ranks: tuple[str, ...] = ()
    """Which ranks ended so."""
    chain: tuple[Link, ...] = ()
    """The exception that Python prints last, and those that led to it."""
    places: tuple[Place, ...] = ()
    """Every rank, if the script has several or did not end."""
    last_lines: tuple[str, ...] = ()
    """The end of what it wrote, where no exception says why it ended: a wrong number is among what a script prints."""
    note: str | None = None
    """What else the engine says: which evidence shows a hang, that memory ran out, why nothing can be said."""


def see(result: CellResult, folder: Path | None) -> Sight:
    """Return what was seen of a script.

    Args:
        result: the engine's.
        folder: the script's own folder, which its frames are in.
    """
    observation = result.observation
    if observation is None or observation.broken:
        written = _written(observation.folder / "main.log") if observation else ()
        why = observation.broken if observation else result.reason
        return Sight(Status.NOT_JUDGED, None, last_lines=written, note=why)
    names = _Names(folder, is_hang=observation.standstill is not None)
    ranks = list(observation.ranks)
    places = tuple(_place(process, names) for process in ranks)
    if result.signature is None:
        if result.verdict is not Verdict.GONE:
            return Sight(Status.INCOMPLETE, None, places=places, note=result.reason)
        return Sight(Status.CLEAN, None, places=places, last_lines=_printed(ranks, observation.folder))
    expected = result.cell.expectation.signature
    failed = [process for process in ranks if process.ending is not Ending.RETURNED]
    witnesses = [process for process in failed if describe(process, expected) == result.signature]
    first = witnesses[0]
    status = _status(first, is_seen=observation.standstill is not None)
    return Sight(
        status,
        _signature(first, result.signature),
        tuple(process.name for process in witnesses),
        tuple(_exception(raised, names) for raised in first.chain) if status is Status.EXCEPTION else (),
        places if len(places) > 1 or status in {Status.HANG, Status.TIME_LIMIT} else (),
        _written(first.log) if status in {Status.EXIT, Status.SIGNAL} else (),
        _note(result, first),
    )


def _printed(ranks: Sequence[Process], folder: Path) -> tuple[str, ...]:
    """Return the end of what the first process wrote, and before it that of rank 0, where a script starts its ranks."""
    first = ranks[0]
    started = ranks[1:] if first.rank is None else ()
    of_ranks = (written for process in started if (written := _written(process.log)))
    return (*next(of_ranks, ()), *_written(first.log or folder / "main.log"))[-_LAST_LINES:]


def _written(log: Path | None) -> tuple[str, ...]:
    return tuple(logs.tail(log, _LAST_LINES))


def _status(process: Process, *, is_seen: bool) -> Status:
    match process.ending:
        case Ending.RAISED:
            return Status.EXCEPTION
        case Ending.EXITED:
            return Status.EXIT
        case Ending.SIGNALLED:
            return Status.SIGNAL
        case Ending.TIMED_OUT | Ending.STOPPED | Ending.RETURNED:
            return Status.HANG if is_seen else Status.TIME_LIMIT
        case _:
            assert_never(process.ending)


def _signature(process: Process, judged: str) -> str:
    """Return the signature of the exception that Python prints last; the judge's is that of its root cause."""
    if not process.chain:
        return judged
    return f"{process.chain[0].name}: {normalise(process.chain[0].message)}"


def _note(result: CellResult, first: Process) -> str | None:
    if result.observation is not None and result.observation.standstill:
        return result.observation.standstill
    if any(_NO_LAUNCHER in raised.message for raised in first.chain):
        return "the script expects a launcher; --ranks 2 starts two ranks as torchrun does"
    if result.verdict is not Verdict.INFRA:
        return None
    return _RAN_OUT if first.chain else result.reason


@dataclass(frozen=True)
class _Names:
    """Short names of files, and whether the script hangs."""

    folder: Path | None
    is_hang: bool

    @property
    def _beginnings(self) -> tuple[str, ...]:
        return (f"{self.folder}/", f"{self.folder.resolve()}/") if self.folder else ()

    def is_own(self, path: str) -> bool:
        """Return whether a file is the script, or beside it."""
        return path.startswith(self._beginnings)

    def short(self, path: str) -> str:
        """Return a file's path in the script's folder, or in the package or the library that it is in."""
        for beginning in self._beginnings:
            path = path.removeprefix(beginning)
        return path_in_package(path)


def _exception(raised: Raised, names: _Names) -> Link:
    shown = [frame for frame in raised.frames if not frame.startswith(_HIDDEN)]
    innermost = shown[-_INNERMOST:]
    own = [frame for frame in shown[:-_INNERMOST] if names.is_own(frame)]
    if own and not any(map(names.is_own, innermost)):
        innermost = [own[-1], *innermost]
    return Link(raised.name, raised.message, tuple(map(names.short, innermost)), raised.via)


def _place(process: Process, names: _Names) -> Place:
    if process.ending not in {Ending.TIMED_OUT, Ending.STOPPED}:
        return Place(process.name, _ending(process))
    stacks = threads(process.stacks)
    shown = [frame for frame in (stacks[-1] if stacks else ()) if not frame.file.startswith(_HIDDEN)]
    inner = next(iter(shown), None)
    own = next((frame for frame in shown if names.is_own(frame.file)), None)
    return Place(
        process.name,
        "waits" if names.is_hang else "still running",
        f"{inner.function} ({names.short(inner.file)}:{inner.line})" if inner else None,
        f"{names.short(own.file)}:{own.line} {own.function}" if own and own is not inner else None,
    )


def _ending(process: Process) -> str:
    match process.ending:
        case Ending.EXITED:
            return f"exited with {process.code}"
        case Ending.SIGNALLED:
            return f"ended by {process.signal or 'an unknown signal'}"
        case _:
            return process.ending.value


def logs_of(processes: Sequence[Process], folder: Path) -> Iterator[Path]:
    """Yield the logs of a run, the main process's first, each once."""
    files = [folder / "main.log", *(process.log for process in processes if process.role is not ProcessRole.HELPER)]
    yield from (file for file in dict.fromkeys(files) if file is not None and file.is_file())
