"""Control of child processes by what Linux offers; on other systems, as far as possible."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Container

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Adopt every orphan among this process's descendants.

    Linux only; elsewhere init adopts an orphan, which is then found only by its session.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_the_parent() -> None:
    """Request SIGKILL for this process when the thread that created it ends.

    Linux only; elsewhere the engine finds the remaining processes by their session.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _children() -> list[int]:
    """Return the pids of this process's children, including adopted ones and zombies."""
    found: list[int] = []
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ():
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found.extend(int(word) for word in file.read().split())
        except OSError:
            continue
    return found


def kill_children(but: Container[int] = ()) -> None:
    """Kill all children except `but`, and the orphans that this process then adopts, until there are none."""
    for _ in range(200):
        children = [pid for pid in _children() if pid not in but]
        if not children:
            return
        for pid in children:
            kill(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may be gone."""
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def kill_session(pid: int) -> None:
    """Kill a session's leader with its process group, or the leader alone if it leads no group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        kill(pid)
