"""Control of child processes, through `prctl` on Linux; best effort elsewhere."""

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
_MADV_COLLAPSE = 25
_HUGE_PAGE = 2 * 2**20


def become_subreaper(*, adopts: bool = True) -> None:
    """Make this process a child subreaper, which adopts its orphaned descendants, or make it none again.

    Linux only; elsewhere init adopts orphans, and the engine finds them by their session.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0)


def die_with_parent() -> None:
    """Request SIGKILL for this process when the thread that created it ends (parent-death signal).

    Linux only; elsewhere the engine finds remaining processes by their session.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def use_huge_pages() -> None:
    """Move this process's memory to huge pages, so that a fork copies 512 times fewer entries of page tables.

    Linux 6.1 or newer only, on machines whose huge pages have this size; elsewhere nothing changes. Memory that is
    locked, or not used yet, stays as it is.
    """
    if sys.platform != "linux":
        return
    madvise = ctypes.CDLL(None).madvise
    with open("/proc/self/maps") as file:
        maps = [line.split() for line in file]
    for span, access, _, _, _, *name in maps:
        if access != "rw-p" or name not in ([], ["[heap]"]):
            continue
        start, end = (int(address, 16) for address in span.split("-"))
        for page in range(-(-start // _HUGE_PAGE), end // _HUGE_PAGE):
            madvise(ctypes.c_void_p(page * _HUGE_PAGE), ctypes.c_size_t(_HUGE_PAGE), _MADV_COLLAPSE)


def _children() -> list[int]:
    """Return the pids of all children, including adopted ones and zombies."""
    pids: list[int] = []
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ():
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                pids.extend(int(word) for word in file.read().split())
        except OSError:
            continue
    return pids


def kill_children(keep: Container[int] = ()) -> None:
    """Kill all children except some, repeatedly, since the orphans of a killed child become children."""
    for _ in range(200):
        children = [pid for pid in _children() if pid not in keep]
        if not children:
            return
        for pid in children:
            kill(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process; do nothing if it has ended."""
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def kill_session(pid: int) -> None:
    """Kill the process group of a session leader, or only the leader if it leads no group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        kill(pid)
