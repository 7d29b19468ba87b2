"""Containment: find and end every process of a job.

Each mechanism catches processes that the others miss:

- The **token**: the folder of the run, which every started process inherits in `REPROS_CELL`. It finds processes that
  left the process group and the session, such as a daemon started by a double fork, which `killpg` misses.
- The **session** of the job's main process. It finds processes that cleared their environment, and processes that
  never had the token in it: the ranks that a warm server forks show the server's environment.
- **Child subreapers** (Linux): the leader of a warm job, and the server. A process that a rank left in another session
  becomes their child, whatever its environment, and they end it (:mod:`repros.inside.warm`).
- The **parent-death signal** (Linux): a warm leader does not outlive its server, nor a rank its leader.
- The **server's token** in `REPROS_SERVER`: it finds what a killed warm server could no longer end
  (:func:`end_all_with`).
- The **leader's pid**: between its fork and its `setsid`, a leader has the environment and the session of its
  server. One that was stopped there, or hangs in a library's fork handler, is ended as the server's child
  (:meth:`repros.engine.launch.server.Leader.end`).
- The **reaper**: it ends everything when the runner itself was killed (:mod:`repros.engine.launch.reaper`).

A process of a cold job that left the session *and* cleared its environment escapes. None of the libraries does both.
macOS has no subreapers and no parent-death signal, so a rank that a warm server forked and that left its session
escapes there too. Tokens and sessions work there: psutil can read the environments of the user's own processes.

Only processes of jobs are contained. An installer or a compiler that a killed runner had started ends by itself, in
about a minute; the next run waits for it and uses its result.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from repros.engine.launch import reaper
from repros.inside import contract

_POLL = 0.02
_PROC = Path("/proc/self")
LADDER = ((signal.SIGINT, 2.0), (signal.SIGTERM, 1.5), *[(signal.SIGKILL, 2.0)] * 3)
"""Signals in order of force, each with its timeout in seconds.

SIGKILL is repeated, since a process may be forked after the others were listed.
"""
HASTY = ((signal.SIGINT, 0.5), (signal.SIGTERM, 0.5), *LADDER[2:])
"""For an interrupted run, where the user waits, and for a deadlock: in C++ code, Python handles no signal."""


def members(token: Path, session: int) -> list[psutil.Process]:
    """Return the living processes of the job with that token, or in that session."""
    processes = []
    for pid in reaper.members(f"{contract.CELL}={token}", {session}) if _PROC.is_dir() else psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if _PROC.is_dir() or _is_member(process, token, session):
                processes.append(process)
    return processes


def _is_member(process: psutil.Process, token: Path, session: int) -> bool:
    """Return whether a process belongs to the job, without `/proc`."""
    if process.status() == psutil.STATUS_ZOMBIE:
        return False
    return os.getsid(process.pid) == session or process.environ().get(contract.CELL) == str(token)


def by_recorded_pid(token: Path, session: int, *, is_nested: bool) -> dict[int, psutil.Process]:
    """Return the living processes of a job by the pids that they record.

    Args:
        token: the job's token.
        session: the session of its main process.
        is_nested: whether the job has a PID namespace of its own; its processes record their pids there. Those that
            wait for it outside record nothing and are left out, as is its init.
    """
    processes = members(token, session)
    if not is_nested:
        return {process.pid: process for process in processes}
    depth = len(_pids_in_namespaces("self"))
    nested = ((_pids_in_namespaces(process.pid), process) for process in processes)
    return {pids[-1]: process for pids, process in nested if len(pids) > depth and pids[-1] != 1}


def _pids_in_namespaces(process: int | str) -> list[int]:
    """Return a process's pid in each PID namespace, from that of `/proc` to its own; empty if it has ended."""
    with contextlib.suppress(OSError):
        for line in (_PROC.parent / str(process) / "status").read_text("utf-8", "replace").splitlines():
            if line.startswith("NSpid:"):
                return list(map(int, line.split()[1:]))
    return []


def stopped(processes: Mapping[int, psutil.Process]) -> set[int]:
    """Return the keys of the processes that a signal has stopped and nothing has continued."""
    pids = set()
    for pid, process in processes.items():
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_STOPPED:
                pids.add(pid)
    return pids


def is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped a process or one that it has started, and nothing has continued it."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return any(member.status() == psutil.STATUS_STOPPED for member in (process, *process.children(recursive=True)))
    return False


def end_all_with(variable: str, value: str) -> None:
    """Kill every process that was started with that environment variable."""
    for _ in range(20):
        living = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(variable) == value and process.status() != psutil.STATUS_ZOMBIE:
                    living.append(process)
        if not living:
            return
        signal_all(living, signal.SIGKILL)
        wait_until_ended(living, 1)


def end(token: Path, session: int, ladder: Sequence[tuple[int, float]] = LADDER) -> int:
    """Send the ladder's signals, one after another, until no process of the job lives.

    Returns:
        The number of processes that had to be ended.
    """
    ended: set[int] = set()
    for number, timeout in ladder:
        processes = members(token, session)
        if not processes:
            break
        ended.update(process.pid for process in processes)
        signal_all(processes, number)
        if number is not signal.SIGKILL:
            # A stopped process handles no signal but SIGKILL until it is continued.
            signal_all(processes, signal.SIGCONT)
        wait_until_ended(processes, timeout)
    return len(ended)


def wait_until_ended(processes: Iterable[psutil.Process], timeout: float) -> None:
    """Wait at most `timeout` seconds until no process runs any more.

    A zombie has ended. `psutil.wait_procs` would wait for its parent to reap it, which init may do seconds later, and
    which a parent of another session may never do; each signal of the ladder would then use its whole timeout.
    """
    until = time.monotonic() + timeout
    living = list(processes)
    while living := [process for process in living if _runs(process)]:
        if time.monotonic() >= until:
            return
        time.sleep(_POLL)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def signal_all(processes: Iterable[psutil.Process], number: int) -> None:
    """Send a signal to each process that still lives."""
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            process.send_signal(number)
