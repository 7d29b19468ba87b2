"""Orphans: processes of a script that left its session and cleared their environment, which containment needs.

While a script runs, this process is a child subreaper (Linux): orphans become its children, and are killed with the
script. Elsewhere such a process escapes, as it does from any job (:mod:`repros.engine.launch.containment`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import psutil

from repros.engine.launch import reaper
from repros.inside.processes import become_subreaper

_MOST_SEARCHES = 20
"""A process that forks while the others are killed is found by the next search."""
_KILL_TIMEOUT = 1.0
"""Seconds to wait for SIGKILL."""


@contextlib.contextmanager
def adopted() -> Iterator[None]:
    """Adopt the orphans of processes that are started in the block, and kill them after it."""
    if sys.platform != "linux":
        yield
        return
    before = {child.pid for child in psutil.Process().children()}
    become_subreaper()
    try:
        yield
    finally:
        _kill_children(before)
        become_subreaper(adopts=False)


def _kill_children(kept: set[int]) -> None:
    """Kill this process's children and their descendants, except those in `kept` and the reaper."""
    for _ in range(_MOST_SEARCHES):
        kept = kept | {reaper.of_this_runner.pid or 0}
        children = [child for child in psutil.Process().children() if child.pid not in kept]
        if not children:
            return
        for child in children:
            with contextlib.suppress(psutil.Error):
                for process in (*child.children(recursive=True), child):
                    process.kill()
        psutil.wait_procs(children, _KILL_TIMEOUT)  # also reaps them
