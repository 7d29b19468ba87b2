"""The surroundings of cells on a node: those in which `ray start` was run, without what Ray changes for its workers."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_RAYLET = "RAY_RAYLET_PID"
_RAYLET_PID = os.environ.get(_RAYLET, "")
_OF_RAY = ("SPT_NOENV", "PYTHONBREAKPOINT", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
"""What Ray sets in a worker, besides names that begin with `RAY_`, where the raylet's own values cannot be read."""


def restore_environment() -> None:
    """Give this worker the environment variables of its raylet, and none of Ray's.

    Ray hides all GPUs from a worker that has none of its own, and has `breakpoint()` wait for its debugger.
    """
    before = _raylet_environment(_RAYLET_PID)
    if before is None:
        before = {name: value for name, value in os.environ.items() if name not in _OF_RAY}
    kept = {name: value for name, value in before.items() if not name.startswith("RAY_")}
    for name in set(os.environ) - set(kept):
        del os.environ[name]
    os.environ.update(kept)


def _raylet_environment(pid: str) -> dict[str, str] | None:
    with contextlib.suppress(OSError, ValueError):
        entries = os.fsdecode(Path("/proc", str(int(pid)), "environ").read_bytes()).split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)
    return None


def restore_priority() -> None:
    """Give this worker the priority of its raylet; Ray gives it a lower one.

    Where other programs keep the processors busy, a cell of low priority reaches its deadline, and a worker of low
    priority keeps others waiting. Only root may raise it again; elsewhere, `RAY_worker_niceness=0 ray start` leaves it.
    """
    with contextlib.suppress(OSError, ValueError):
        raylet = os.getpriority(os.PRIO_PROCESS, int(_RAYLET_PID))
        # Linux has a priority for each thread; new threads and processes take that of the one that starts them.
        for thread in Path("/proc/self/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), raylet)


def receive_interrupts() -> None:
    """Let the processes that this thread starts receive SIGINT, which Ray blocks in its workers."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
