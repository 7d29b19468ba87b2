"""Orphans: processes of a script that left its session and cleared their environment, which containment needs.

While a script runs, this process is a child subreaper (Linux): orphans become its children. They are reaped while it
runs, so that a chain of short-lived daemons leaves no thousands of zombies, and the living are killed with the script.
Elsewhere such a process escapes, as it does from any job (:mod:`repros.engine.launch.containment`). Where the sandbox
has a PID namespace, its init adopts them instead, and little is left to do here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

from repros.engine.launch import reaper
from repros.inside.processes import become_subreaper

_PERIOD = 0.2
"""Seconds between two rounds."""
_REAPED_BY_PARENT = 5.0
"""Seconds within which this process itself reaps a child that it has started."""
_KILL_TIMEOUT = 20.0
"""Seconds for the last kills: a process that forks and ends at once may escape many of them."""
_PROC = Path("/proc")


class _Process(NamedTuple):
    """A process, as `/proc/PID/stat` has it."""

    pid: int
    is_zombie: bool
    parent: int
    group: int
    session: int


@contextlib.contextmanager
def adopted() -> Iterator[None]:
    """Adopt the orphans of processes that are started in the block, reap those that end, and kill the rest after it."""
    if sys.platform != "linux":
        yield
        return
    before = {process.pid for process in _all_processes() if process.parent == os.getpid()}
    over = threading.Event()
    reaping = threading.Thread(target=_reap_until, args=(over, before), daemon=True)
    become_subreaper()
    reaping.start()
    try:
        yield
    finally:
        over.set()
        reaping.join()
        _kill_descendants(before)
        become_subreaper(adopts=False)


def _reap_until(over: threading.Event, kept: Container[int]) -> None:
    """Reap the orphans that have ended.

    A child that this process has started is in its session or leads one of its own. So may an orphan, but nobody reaps
    that one.
    """
    seen: dict[int, float] = {}
    while not over.wait(_PERIOD):
        ended = [one for one in _all_processes() if one.is_zombie and one.parent == os.getpid() and one.pid not in kept]
        now = time.monotonic()
        seen = {one.pid: seen.get(one.pid, now) for one in ended}
        for one in ended:
            is_foreign = one.session not in {os.getsid(0), one.pid}
            if is_foreign or now - seen[one.pid] > _REAPED_BY_PARENT:
                _reap(one.pid)


def _kill_descendants(kept: Container[int]) -> None:
    """Kill this process's children and their descendants, except those in `kept` and the reaper."""
    until = time.monotonic() + _KILL_TIMEOUT
    while (found := _descendants(kept)) and time.monotonic() < until:
        for group in {one.group for one in found} - {os.getpgrp()}:
            # At once, so that none of the group forks in between.
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        for one in found:
            if not one.is_zombie:
                with contextlib.suppress(OSError):
                    os.kill(one.pid, signal.SIGKILL)
            if one.parent == os.getpid():
                _reap(one.pid)
        time.sleep(0.001)


def _descendants(kept: Container[int]) -> list[_Process]:
    """Return the descendants of this process without those in `kept` and theirs, in one scan."""
    own_reaper = reaper.of_this_runner.pid
    children: dict[int, list[_Process]] = {}
    for process in _all_processes():
        children.setdefault(process.parent, []).append(process)
    found, parents = list[_Process](), [os.getpid()]
    while parents:
        started = children.pop(parents.pop(), ())
        below = [child for child in started if child.pid not in kept and child.pid != own_reaper]
        found += below
        parents += [child.pid for child in below]
    return found


def _all_processes() -> Iterator[_Process]:
    for entry in os.scandir(_PROC):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (_PROC / entry.name / "stat").read_bytes().rpartition(b")")[2].split()
                yield _Process(int(entry.name), fields[0] in {b"Z", b"X"}, *map(int, fields[1:4]))


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
