"""Evidence of a documented hang, so that its cell does not wait for its deadline.

Where a cell is documented to hang, the hang is seen once all of this holds in three steps in a row, of 1.5 s each:

- Every rank lives and has joined the process group. Its main thread has not run and was in one wait of C++ at every
  look: for a condition of another thread, which in Linux is a futex. The process has read and written nothing.
- No process of the cell, helpers included, was stopped (SIGSTOP), waited for a disk, had a thread that wanted to run at
  every look, or used more of a processor than idle threads do. So a compiler, or a data loader's worker that computes,
  is progress, however slow.
- The stack of each rank's main thread is the same after each step. It is in a call that waits for other ranks, or in
  the interpreter's exit, and a launcher waits for its ranks. No other Python thread runs but those of progress bars
  (:mod:`repros.engine.launch.waits`).
- The script gave no process group a timeout that ends before the deadline.

Otherwise the deadline decides. So it does for a rank that sleeps, or waits for a file, a child or a connection, since
nobody can see when it wakes. A wait in the store is one for a connection; such a rank is not even asked for its stack,
since torch 2.1 takes any signal there for an error ("Socket Timeout", "Interrupted system call"). The deadline decides,
too, for a single rank; on CUDA, where the GPU may compute unseen; and where there is no Linux `/proc`, which tells
where a thread waits. What nobody sees is a thread of C++ that sleeps and will release a rank.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from repros.engine.launch import containment, stacks
from repros.engine.launch.gather import Trace, read_traces
from repros.engine.launch.waits import call_that_waits
from repros.model import Cell, Device, Ending, ExpectedOutcome, ProcessRole

STEP, STEPS = 1.5, 3
"""Seconds of one step, and how many there must be in a row."""
_LOOK = 0.2
"""Seconds between two looks at the processes."""
_PAUSE = 2.0
"""Seconds until the next step if the stacks show no hang: each request interrupts the main threads."""
IDLE = 0.02
"""Processors that the threads of a waiting process use at most.

At most 0.007 was measured, over a second each, with torch 2.1 to 2.15: Gloo's thread wakes 100 times a second (0.002 to
0.005), and so does the progress bar of Lightning 2.6 (0.003 to 0.005). Main threads ran not once in 45 s.
"""
_STOPPED = {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}


class Standstill:
    """Whether a running cell, documented to hang, hangs; asked again and again while the cell runs."""

    def __init__(self, cell: Cell, folder: Path, session: int) -> None:
        """Take the cell, its folder and the session of its main process."""
        self._cell, self._folder, self._session = cell, folder, session
        self._begun = time.monotonic()
        self._next = self._begun if is_documented(cell) and Path("/proc/self/task").is_dir() else float("inf")
        self._step: _Step | None = None
        self._calls: list[dict[int, stacks.StackTrace]] = []
        """The main threads' stacks after each step in a row."""
        self.evidence: str | None = None
        """What showed the hang, once it is seen."""

    def is_seen(self) -> bool:
        """Look at the processes, if it is time to, and return whether the cell hangs."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _LOOK
            if self._step is None or not self._step.goes_on():
                self._begin()
            elif self._step.is_complete():
                self._end_step(self._step)
        return self.evidence is not None

    def _begin(self) -> None:
        """Begin the first step, if all ranks are there."""
        self._calls = []
        waiting = self._waiting()
        members = self._members() if waiting else {}
        self._step = _Step(members, waiting) if waiting and waiting.keys() <= members.keys() else None

    def _end_step(self, step: _Step) -> None:
        """Look at the stacks; begin the next step or see the hang, or begin anew after a pause."""
        waiting, members = self._waiting(), self._members()
        self._step = None
        if not step.was_still(members) or not waiting or waiting.keys() != step.waiting:
            return
        requested = stacks.take(self._folder, [members[pid] for pid in waiting])
        threads = {pid: stacks.threads(requested.texts.get(pid, "")) for pid in waiting}
        names = {pid: _call(trace, threads[pid]) for pid, trace in waiting.items()}
        found = {pid: stack[-1] for pid, stack in threads.items() if stack}
        if not all(names.values()) or self._calls[-1:] not in ([], [found]):
            self._next, self._calls = time.monotonic() + _PAUSE, []
            return
        self._calls.append(found)
        if len(self._calls) == STEPS:
            self.evidence = self._sentence({trace.rank: names[pid] for pid, trace in waiting.items()})
        self._step = _Step(members, waiting)

    def _sentence(self, names: dict[int | None, str | None]) -> str:
        where = (f"rank {rank} in {name}" for rank, name in sorted(names.items(), key=str) if rank is not None)
        seconds = time.monotonic() - self._begun
        return f"seen after {seconds:.1f} s, since for {STEP * STEPS} s no rank ran and all waited: {', '.join(where)}"

    def _members(self) -> dict[int, psutil.Process]:
        return {process.pid: process for process in containment.members(self._folder, self._session)}

    def _waiting(self) -> dict[int, Trace]:
        """Return the ranks, and the launcher if it is not one; empty if a rank is missing, failed or has a timeout."""
        traces = read_traces(self._folder, self._session)
        taking_part = {ProcessRole.MAIN, ProcessRole.RANK}
        found = {pid: trace for pid, trace in traces.items() if trace.role in taking_part}
        ranks = [trace.rank for trace in found.values() if trace.world_size == self._cell.processes]
        is_over = any(trace.raised or trace.exit for trace in found.values())
        given = (trace.timeout for trace in found.values() if trace.timeout is not None)
        if (
            is_over
            or len(ranks) != self._cell.processes
            or min(given, default=float("inf")) < self._cell.repro.deadline
        ):
            return {}
        return found if set(ranks) == set(range(len(ranks))) else {}


def is_documented(cell: Cell) -> bool:
    """Return whether a hang of several ranks is what the cell's header documents, on a device that hides no work."""
    ends = cell.expectation.signature.ends
    hangs = cell.expectation.outcome is ExpectedOutcome.FAILS and ends is not None and ends.ending is Ending.TIMED_OUT
    return hangs and cell.processes > 1 and cell.device is not Device.CUDA


def _call(trace: Trace, threads: list[stacks.StackTrace]) -> str | None:
    return call_that_waits(threads, is_rank=trace.is_rank, is_finished=trace.finished is not None)


@dataclass(frozen=True)
class _Use:
    """What a process has used of the machine so far."""

    seconds: float
    """Processor time of all its threads."""
    moves: tuple[int, ...]
    """Context switches of its main thread; calls that read and wrote."""
    wanting: frozenset[str]
    """Threads that run, want to, or wait for a disk now."""
    status: str
    """What the main thread does, as psutil calls it."""
    waits_in: str
    """The kernel's function in which the main thread waits; `0` where the kernel does not tell."""


class _Step:
    """The processes of a cell over a second or two."""

    def __init__(self, members: dict[int, psutil.Process], waiting: Mapping[int, Trace]) -> None:
        """Look at the processes for the first time; those that are `waiting` may not move at all."""
        self._members = members
        self.waiting = waiting.keys()
        self._ranks = {pid for pid, trace in waiting.items() if trace.is_rank}
        self._begun = time.monotonic()
        self._first = _uses(members)
        self._wanting = {pid: use.wanting for pid, use in self._first.items()}

    def goes_on(self) -> bool:
        """Look again; return False if a process has moved that should wait, or one was stopped or is gone."""
        now = _uses(self._members)
        if now.keys() != self._members.keys() or self._first.keys() != now.keys():
            return False
        for pid, use in now.items():
            self._wanting[pid] &= use.wanting
            has_moved = use.status != psutil.STATUS_SLEEPING or use.moves != self._first[pid].moves
            has_worked = use.seconds - self._first[pid].seconds > IDLE * max(STEP, time.monotonic() - self._begun)
            if has_worked or use.status in _STOPPED or (pid in self.waiting and has_moved):
                return False
            if pid in self._ranks and not use.waits_in.startswith("futex"):
                return False
        return True

    def is_complete(self) -> bool:
        """Return whether it has taken its time."""
        return time.monotonic() - self._begun >= STEP

    def was_still(self, members: dict[int, psutil.Process]) -> bool:
        """Return whether these are the same processes still, and no thread has wanted to run at every look."""
        return members.keys() == self._members.keys() and not any(self._wanting.values())


def _uses(members: dict[int, psutil.Process]) -> dict[int, _Use]:
    """Return the use of each process that is there and shows it."""
    found = {}
    for pid, process in members.items():
        with contextlib.suppress(psutil.Error, OSError), process.oneshot():
            times, switches, io = process.cpu_times(), process.num_ctx_switches(), process.io_counters()
            found[pid] = _Use(
                times.user + times.system,
                (switches.voluntary, switches.involuntary, io.read_count, io.write_count),
                _wanting(pid),
                process.status(),
                Path(f"/proc/{pid}/wchan").read_text("utf-8"),
            )
    return found


def _wanting(pid: int) -> frozenset[str]:
    """Return the threads of a process that run, want to, or wait for a disk now."""
    found = set()
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            state = file.read_text("utf-8", "replace").rpartition(")")[2].split()[0]
            if state in {"R", "D"}:
                found.add(file.parent.name)
    return frozenset(found)
