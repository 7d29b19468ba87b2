"""What Linux offers to keep hold of child processes; elsewhere the same as far as it goes."""

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
    """Be the parent of every orphan among this process's descendants.

    Linux only; elsewhere an orphan goes to init and is found by its session alone.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_the_parent() -> None:
    """Be killed when the thread that made this process ends.

    Linux only; elsewhere the engine finds what is left by its session.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _children() -> list[int]:
    """Return the pids of this process's living children, adopted ones too; zombies are collected on the way."""
    found: list[int] = []
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ():
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found.extend(int(word) for word in file.read().split())
        except OSError:
            continue
    return found


def kill_children(but: Container[int] = ()) -> None:
    """End every child but some, and what they leave behind as it becomes ours, until there is none."""
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
    """End a session's leader and its process group, or the leader alone when it leads none."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        kill(pid)
