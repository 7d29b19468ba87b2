"""The outcome of a script's run on one stack: how it ended, with its signature, and where each rank was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import assert_never

import repros
from repros.engine.causes import find_causes
from repros.engine.launch import logs
from repros.engine.launch.stacks import threads
from repros.engine.signature import describe, normalise
from repros.model import End, Ending, Observation, Process, ProcessRole, Raised, Signature
from repros.model.observation import path_in_package

_INNERMOST = 3
"""Frames shown of an exception."""
_LAST_LINES = 5
_NO_LAUNCHER = "environment variable RANK expected"
_SHOWN_RECORDS = 3
_RAN_OUT = "memory, disk, ports or files ran out, by --memory or --file-size, or on this machine"
_HIDDEN = ("<", f"{Path(repros.__file__).parent}/")
"""Path prefixes hidden from reports: generated code, and this project."""
_HANG = Signature(ends=End(Ending.TIMED_OUT))


class Status(StrEnum):
    """How a script ended on a stack."""

    CLEAN = "clean"
    EXCEPTION = "exception"
    EXIT = "exit"
    """An exit code other than zero."""
    SIGNAL = "signal"
    HANG = "hang"
    """A deadlock of all ranks was detected."""
    TIME_LIMIT = "time limit"
    """It timed out, and might have ended later."""
    INCOMPLETE = "incomplete"
    """Fewer ranks took part than expected."""
    NOT_JUDGED = "not judged"
    """The engine could not do its work."""
    NOT_RUN = "not run"


@dataclass(frozen=True)
class RankLocation:
    """Where a rank was at the end of the run."""

    rank: str
    """`rank 1`."""
    ending: str
    """`waits`, `still running`, `returned`, `raised`, ..."""
    call: str | None = None
    """`all_reduce (torch/distributed/distributed_c10d.py:2806)`: its innermost call, if it still ran."""
    called_at: str | None = None
    """`train.py:14 main`: the line of the script that led to it."""

    def __str__(self) -> str:
        """Return `waits in all_reduce (...), called at train.py:14 main`."""
        called = f", called at {self.called_at}" if self.called_at else ""
        return f"{self.ending}{f' in {self.call}' if self.call else ''}{called}"


@dataclass(frozen=True)
class Link:
    """One exception of a chain."""

    type: str
    message: str
    frames: tuple[str, ...]
    """The innermost frames, after the script's own: `torch/nn/functional.py:2546 layer_norm`."""
    via: str | None
    """How the exception before it refers to this one: `cause`, `context`, `group`; None for the first."""


@dataclass(frozen=True)
class ScriptOutcome:
    """How a script's run ended."""

    status: Status
    signature: str | None
    """`RuntimeError: mat1 and mat2 ...`, `hang`, `exit 3`, `signal SIGSEGV`: the same text on every machine."""
    ranks: tuple[str, ...] = ()
    """The ranks that ended with this signature."""
    chain: tuple[Link, ...] = ()
    """The exception that Python prints last, and those that led to it."""
    locations: tuple[RankLocation, ...] = ()
    """Every rank, if the script has several or did not end."""
    last_lines: tuple[str, ...] = ()
    """The end of the output, unless an exception explains the ending: a wrong number is among what a script prints."""
    note: str | None = None
    """Further evidence: of a deadlock, of exhausted memory, or why the run could not be judged."""
    machine_failed: bool = False
    """Whether the machine or the engine failed rather than the script."""


def classify(observation: Observation, ranks: int, folder: Path | None) -> ScriptOutcome:
    """Return how a script's run ended.

    Args:
        observation: the run.
        ranks: the expected world size.
        folder: the working folder of the run, which contains the script; None if unknown.
    """
    outcome, shown = _classify(observation, ranks, folder)
    if observation.damaged:
        skipped = f"skipped records of the run: {', '.join(observation.damaged[:_SHOWN_RECORDS])}"
        outcome = replace(outcome, note="; ".join(filter(None, (outcome.note, skipped))))
    return replace(outcome, last_lines=_last_lines(observation.folder, shown))


def _classify(observation: Observation, ranks: int, folder: Path | None) -> tuple[ScriptOutcome, Sequence[Path]]:
    """Return how a run ended, and the logs that show more of it."""
    main_log = observation.folder / "main.log"
    if observation.broken:
        outcome = ScriptOutcome(Status.NOT_JUDGED, None, note=observation.broken, machine_failed=True)
        return outcome, [main_log]
    names = _Names(folder, is_hang=observation.deadlock is not None)
    processes = _with_launcher(list(observation.ranks))
    locations = tuple(_location(process, names) for process in processes)
    # As for a cell that is documented to hang: any other failure explains a rank that waits for a failed one.
    causes = find_causes(observation, ranks, lambda process: process.ending is Ending.TIMED_OUT)
    signature = describe(causes.failed[0], _HANG) if causes.failed else None
    failed = [process for process in processes if process.ending is not Ending.RETURNED]
    witnesses = [process for process in failed if describe(process, _HANG) == signature]
    if signature is None:
        if causes.missing:
            note = f"{causes.missing} of the ranks never ran"
            return ScriptOutcome(Status.INCOMPLETE, None, locations=locations, note=note), []
        return ScriptOutcome(Status.CLEAN, None, locations=locations), _printed_logs(processes, main_log)
    first = witnesses[0]
    status = _status(first, is_detected=observation.deadlock is not None)
    outcome = ScriptOutcome(
        status,
        _signature(first, signature),
        tuple(process.name for process in witnesses),
        tuple(_link(raised, names) for raised in first.chain) if status is Status.EXCEPTION else (),
        locations if len(locations) > 1 or status in {Status.HANG, Status.TIME_LIMIT} else (),
        note=_note(observation, first, causes.broken),
        machine_failed=causes.broken is not None,
    )
    if status not in {Status.EXIT, Status.SIGNAL}:
        return outcome, []
    return outcome, _printed_logs(processes, main_log) if first is processes[0] else _existing(first.log)


def _with_launcher(processes: list[Process]) -> list[Process]:
    """Return the processes, of which the first is no rank if it has started another process with its rank.

    It has a rank if its own variables name one, or if no process has rank 0 yet.
    """
    first, others = processes[:1], processes[1:]
    is_launcher = any(one.role is ProcessRole.MAIN and one.rank == other.rank for one in first for other in others)
    return [*(replace(one, rank=None) for one in first), *others] if is_launcher else processes


def _printed_logs(processes: Sequence[Process], main_log: Path) -> Sequence[Path]:
    """Return the first process's log, after those of the ranks if the first process launched them."""
    first = processes[0]
    launched = processes[1:] if first.rank is None else ()
    return [*_existing(*(process.log for process in launched)), first.log or main_log]


def _existing(*files: Path | None) -> Sequence[Path]:
    return [file for file in files if file is not None]


def _last_lines(folder: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """Return the end of the last of these logs, after that of the first of the others that has a line."""
    *others, last = ((), *(logs.tail(folder, file, _LAST_LINES) for file in files))
    return (*next(filter(None, others), ()), *last)[-_LAST_LINES:]


def _status(process: Process, *, is_detected: bool) -> Status:
    match process.ending:
        case Ending.RAISED:
            return Status.EXCEPTION
        case Ending.EXITED:
            return Status.EXIT
        case Ending.SIGNALLED:
            return Status.SIGNAL
        case Ending.TIMED_OUT | Ending.STOPPED | Ending.RETURNED:
            return Status.HANG if is_detected else Status.TIME_LIMIT
        case _:
            assert_never(process.ending)


def _signature(process: Process, cause: str) -> str:
    """Return the signature of the exception that Python prints last rather than that of the root cause."""
    if not process.chain:
        return cause
    return f"{process.chain[0].name}: {normalise(process.chain[0].message)}"


def _note(observation: Observation, first: Process, broken: str | None) -> str | None:
    if observation.deadlock:
        return observation.deadlock
    if any(_NO_LAUNCHER in raised.message for raised in first.chain):
        return "the script expects a launcher; --ranks 2 starts two ranks as torchrun does"
    return _RAN_OUT if broken and first.chain else broken


@dataclass(frozen=True)
class _Names:
    """Short names of files, and whether the ranks are in a deadlock."""

    folder: Path | None
    is_hang: bool

    @property
    def _prefixes(self) -> tuple[str, ...]:
        return (f"{self.folder}/", f"{self.folder.resolve()}/") if self.folder else ()

    def is_own(self, path: str) -> bool:
        """Return whether a file is in the script's folder."""
        return path.startswith(self._prefixes)

    def short(self, path: str) -> str:
        """Return a file's path relative to the script's folder or to its library."""
        for prefix in self._prefixes:
            path = path.removeprefix(prefix)
        return path_in_package(path)


def _link(raised: Raised, names: _Names) -> Link:
    shown = [frame for frame in raised.frames if not frame.startswith(_HIDDEN)]
    innermost = shown[-_INNERMOST:]
    own = [frame for frame in shown[:-_INNERMOST] if names.is_own(frame)]
    if own and not any(map(names.is_own, innermost)):
        innermost = [own[-1], *innermost]
    return Link(raised.name, raised.message, tuple(map(names.short, innermost)), raised.via)


def _location(process: Process, names: _Names) -> RankLocation:
    if process.ending not in {Ending.TIMED_OUT, Ending.STOPPED}:
        return RankLocation(process.name, _ending(process))
    traces = threads(process.stacks)
    shown = [frame for frame in (traces[-1] if traces else ()) if not frame.file.startswith(_HIDDEN)]
    inner = next(iter(shown), None)
    own = next((frame for frame in shown if names.is_own(frame.file)), None)
    return RankLocation(
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
    """Yield the logs that a run may have, without repetition, the main process's first."""
    files = [folder / "main.log", *(process.log for process in processes if process.role is not ProcessRole.HELPER)]
    yield from (file for file in dict.fromkeys(files) if file is not None)
