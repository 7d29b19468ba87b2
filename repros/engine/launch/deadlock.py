"""Detection of a deadlock of ranks, so that a job that is expected to hang does not run until its deadline.

The deadlock is detected once all of this holds in three steps in a row, of 1.5 s each:

- Every rank lives and has joined the process group. Its main thread has not run, and every sample finds it in one wait
  of C++: for a condition of another thread, which in Linux is a futex. The process has read and written nothing.
- No process of the job, helpers included, was stopped (SIGSTOP), waited for a disk, had a thread that was runnable in
  every sample, or used more processor time than idle threads do. A compiler, or a computing worker of a data loader,
  therefore counts as progress, however slow.
- The stack of each rank's main thread is the same after each step. It is in a call that waits for other ranks, or in
  the interpreter's exit, and a launcher waits for its ranks. No other Python thread runs but those of progress bars
  (:mod:`repros.engine.launch.waits`).
- The script gave no process group a timeout that ends before the deadline.

Otherwise the deadline decides. It also decides

- for a rank that sleeps, or waits for a file, a child or a connection, since nothing shows when it wakes. A wait in the
  store is one for a connection; such a rank is not even asked for its stack, since torch 2.1 takes any signal there for
  an error ("Socket Timeout", "Interrupted system call");
- for a single rank;
- on CUDA, where the GPU may compute unobserved;
- without Linux's `/proc`, which shows where a thread waits.

Not detectable is a thread of C++ that sleeps and will release a rank.
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
from repros.engine.launch.job import Job
from repros.engine.launch.waits import call_that_waits
from repros.model import ProcessRole

STEP, STEPS = 1.5, 3
"""Seconds of one step, and how many there must be in a row."""
_PERIOD = 0.2
"""Seconds between two samples of the processes."""
_PAUSE = 2.0
"""Seconds until the next step if the stacks show no hang: each request interrupts the main threads."""
IDLE = 0.02
"""Processors that the threads of a waiting process use at most.

At most 0.007 was measured, over a second each, with torch 2.1 to 2.15: Gloo's thread wakes 100 times a second (0.002 to
0.005), and so does the progress bar of Lightning 2.6 (0.003 to 0.005). Main threads ran not once in 45 s.
"""
_STOPPED = {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}


class DeadlockWatch:
    """Whether the ranks of a running job are in a deadlock; asked again and again while the job runs."""

    def __init__(self, job: Job, folder: Path, session: int) -> None:
        """Begin to watch a job.

        Args:
            job: the job; one that is not expected to hang is never found in a deadlock.
            folder: the folder of its run.
            session: the session of its main process.
        """
        self._job, self._folder, self._session = job, folder, session
        self._begun = time.monotonic()
        self._next = self._begun if job.expects_hang and Path("/proc/self/task").is_dir() else float("inf")
        self._step: _Step | None = None
        self._calls: list[dict[int, stacks.StackTrace]] = []
        """The main threads' stacks after each step in a row."""
        self.evidence: str | None = None
        """What showed the deadlock, once it is detected."""

    def is_detected(self) -> bool:
        """Sample the processes, if a sample is due, and return whether the ranks are in a deadlock."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PERIOD
            if self._step is None or not self._step.continues():
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
        """Take the stacks; begin the next step, detect the deadlock, or begin anew after a pause."""
        waiting, members = self._waiting(), self._members()
        self._step = None
        if not step.was_still(members) or not waiting or waiting.keys() != step.waiting:
            return
        requested = stacks.take(self._folder, {pid: members[pid] for pid in waiting})
        threads = {pid: stacks.threads(requested.texts.get(pid, "")) for pid in waiting}
        names = {pid: _call(trace, threads[pid]) for pid, trace in waiting.items()}
        main_stacks = {pid: traces[-1] for pid, traces in threads.items() if traces}
        if not all(names.values()) or self._calls[-1:] not in ([], [main_stacks]):
            self._next, self._calls = time.monotonic() + _PAUSE, []
            return
        self._calls.append(main_stacks)
        if len(self._calls) == STEPS:
            self.evidence = self._sentence({trace.rank: names[pid] for pid, trace in waiting.items()})
        self._step = _Step(members, waiting)

    def _sentence(self, names: dict[int | None, str | None]) -> str:
        calls = (f"rank {rank} in {name}" for rank, name in sorted(names.items(), key=str) if rank is not None)
        seconds = time.monotonic() - self._begun
        return f"seen after {seconds:.1f} s, since for {STEP * STEPS} s no rank ran and all waited: {', '.join(calls)}"

    def _members(self) -> dict[int, psutil.Process]:
        is_nested = self._job.main_pid is not None
        return containment.by_recorded_pid(self._folder, self._session, is_nested=is_nested)

    def _waiting(self) -> dict[int, Trace]:
        """Return the ranks, and the launcher if it is not one; empty if a rank is missing, failed or has a timeout."""
        traces = read_traces(self._folder, self._job.main_pid or self._session)
        roles = {ProcessRole.MAIN, ProcessRole.RANK}
        waiting = {pid: trace for pid, trace in traces.items() if trace.role in roles}
        ranks = [trace.rank for trace in waiting.values() if trace.world_size == self._job.ranks]
        has_failed = any(trace.raised or trace.exit for trace in waiting.values())
        timeouts = (trace.timeout for trace in waiting.values() if trace.timeout is not None)
        if has_failed or len(ranks) != self._job.ranks or min(timeouts, default=float("inf")) < self._job.deadline:
            return {}
        return waiting if set(ranks) == set(range(len(ranks))) else {}


def _call(trace: Trace, threads: list[stacks.StackTrace]) -> str | None:
    return call_that_waits(threads, is_rank=trace.is_rank, is_finished=trace.finished is not None)


@dataclass(frozen=True)
class _Usage:
    """What a process has used of the machine until now."""

    seconds: float
    """Processor time of all its threads."""
    activity: tuple[int, ...]
    """Context switches of its main thread; calls that read and wrote."""
    runnable: frozenset[str]
    """Threads that run, are ready to run, or wait for a disk now."""
    status: str
    """The main thread's state, as psutil calls it."""
    waits_in: str
    """The kernel's function in which the main thread waits; `0` where the kernel does not tell."""


class _Step:
    """The processes of a job over a second or two."""

    def __init__(self, members: dict[int, psutil.Process], waiting: Mapping[int, Trace]) -> None:
        """Take the first sample; the main threads of processes that are `waiting` must stay inactive."""
        self._members = members
        self.waiting = waiting.keys()
        self._ranks = {pid for pid, trace in waiting.items() if trace.is_rank}
        self._begun = time.monotonic()
        self._first = _usages(members)
        self._runnable = {pid: usage.runnable for pid, usage in self._first.items()}

    def continues(self) -> bool:
        """Take another sample; return False if a waiting process was active, or one was stopped or is gone."""
        sample = _usages(self._members)
        if sample.keys() != self._members.keys() or self._first.keys() != sample.keys():
            return False
        for pid, usage in sample.items():
            self._runnable[pid] &= usage.runnable
            was_active = usage.status != psutil.STATUS_SLEEPING or usage.activity != self._first[pid].activity
            has_worked = usage.seconds - self._first[pid].seconds > IDLE * max(STEP, time.monotonic() - self._begun)
            if has_worked or usage.status in _STOPPED or (pid in self.waiting and was_active):
                return False
            if pid in self._ranks and not usage.waits_in.startswith("futex"):
                return False
        return True

    def is_complete(self) -> bool:
        """Return whether its time is over."""
        return time.monotonic() - self._begun >= STEP

    def was_still(self, members: dict[int, psutil.Process]) -> bool:
        """Return whether the processes are the same, and no thread was runnable in every sample."""
        return members.keys() == self._members.keys() and not any(self._runnable.values())


def _usages(members: dict[int, psutil.Process]) -> dict[int, _Usage]:
    """Return the usage of each process that still exists and may be read."""
    usages = {}
    for pid, process in members.items():
        with contextlib.suppress(psutil.Error, OSError), process.oneshot():
            times, switches, io = process.cpu_times(), process.num_ctx_switches(), process.io_counters()
            usages[pid] = _Usage(
                times.user + times.system,
                (switches.voluntary, switches.involuntary, io.read_count, io.write_count),
                _runnable(process.pid),
                process.status(),
                Path(f"/proc/{process.pid}/wchan").read_text("utf-8"),
            )
    return usages


def _runnable(pid: int) -> frozenset[str]:
    """Return the threads of a process that run, are ready to run, or wait for a disk now."""
    threads = set()
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            state = file.read_text("utf-8", "replace").rpartition(")")[2].split()[0]
            if state in {"R", "D"}:
                threads.add(file.parent.name)
    return frozenset(threads)
