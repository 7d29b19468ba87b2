"""The environment of cells on a node: that of `ray start`, without Ray's changes for its workers."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_RAYLET = "RAY_RAYLET_PID"
_RAYLET_PID = os.environ.get(_RAYLET, "")
_OF_RAY = ("SPT_NOENV", "PYTHONBREAKPOINT", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
"""Variables, except `RAY_*`, that Ray sets in workers; removed if the raylet's values cannot be read."""


def restore_environment() -> None:
    """Restore the environment variables of this worker's raylet, without those of Ray.

    Ray hides all GPUs from workers without GPUs, and redirects `breakpoint()` to its debugger.
    """
    before = _raylet_environment(_RAYLET_PID)
    if before is None:
        before = {name: value for name, value in os.environ.items() if name not in _OF_RAY}
    restored = {name: value for name, value in before.items() if not name.startswith("RAY_")}
    for name in set(os.environ) - set(restored):
        del os.environ[name]
    os.environ.update(restored)


def _raylet_environment(pid: str) -> dict[str, str] | None:
    with contextlib.suppress(OSError, ValueError):
        entries = os.fsdecode(Path("/proc", str(int(pid)), "environ").read_bytes()).split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)
    return None


def restore_priority() -> None:
    """Restore the priority of this worker's raylet, which Ray lowers for workers.

    On a busy machine, a cell of low priority times out, and a worker of low priority delays others. Only root may raise
    the priority; other users can prevent the change with `RAY_worker_niceness=0 ray start`.
    """
    with contextlib.suppress(OSError, ValueError):
        raylet = os.getpriority(os.PRIO_PROCESS, int(_RAYLET_PID))
        # On Linux each thread has its own priority, which new threads and processes inherit.
        for thread in Path("/proc/self/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), raylet)


def receive_interrupts() -> None:
    """Unblock SIGINT for the child processes of this thread; Ray blocks it in its workers."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
