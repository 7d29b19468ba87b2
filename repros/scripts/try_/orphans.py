"""Orphans: processes of a script that left its session and cleared their environment, by which the engine finds it.

While a script runs, this process is a child subreaper (Linux): whatever loses its parent becomes its child, and is
ended with the script. Elsewhere such a process escapes, as that of any cell (:mod:`repros.engine.launch.containment`).
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator

import psutil

from repros.engine.launch import reaper

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_LOOKS = 20
"""Searches at most: a process that forks while the others are ended is found by the next."""
_SECONDS = 1.0
"""That the kernel gets to end a killed process."""


@contextlib.contextmanager
def adopted() -> Iterator[None]:
    """Adopt the orphans of what is started in the block, and end them after it."""
    if sys.platform != "linux":
        yield
        return
    before = {child.pid for child in psutil.Process().children()}
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _end_children(before)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _end_children(kept: set[int]) -> None:
    """Kill this process's children, with all below them, but for those that it had before and its own reaper."""
    for _ in range(_LOOKS):
        kept = kept | {reaper.of_this_runner.pid or 0}
        children = [child for child in psutil.Process().children() if child.pid not in kept]
        if not children:
            return
        for child in children:
            with contextlib.suppress(psutil.Error):
                for each in (*child.children(recursive=True), child):
                    each.kill()
        psutil.wait_procs(children, _SECONDS)  # and takes their wait statuses
