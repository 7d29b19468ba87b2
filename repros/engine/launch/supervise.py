"""Runs one cell from its folder to its observation: deadline, logs, stacks, ladder; however it is launched."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from repros.engine.launch import containment, logs, reaper
from repros.engine.launch.gather import Timeline, gather
from repros.inside.hook import RANK_GRACE, STACKS_SIGNAL
from repros.model import Cell, Observation

_POLL = 0.1
_STACKS_PATIENCE = 1.0
_ROOM = 64 * 1024
"""Bytes that the logs' disk must take in the end; the longest record of an exception is about as long."""


@dataclass(frozen=True)
class CellDirs:
    """Where a cell runs."""

    folder: Path
    """Absolute; holds the logs and events, and is the token by which the cell's processes are found."""
    workdir: Path
    """Working and temporary directory; gone afterwards."""

    @property
    def log(self) -> Path:
        """What stdout and stderr of the main process go to."""
        return self.folder / "main.log"


class Main(Protocol):
    """The process that the engine started; its pid is the session's id."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end at most that many seconds; False when it has not come."""

    @property
    def returncode(self) -> int:
        """Exit code, negative for a signal; only once `wait` has returned True."""


Launch = Callable[[Cell, CellDirs], Main]
"""Starts a cell's main process in a session of its own."""


def run(cell: Cell, folder: Path, launch: Launch, how: str, stop: threading.Event) -> Observation:
    """Run one cell below `folder` (made, must be new) and return when no process of it lives.

    An engine that cannot do its work (no disk, no process) gives an observation that is `broken`, never an exception.
    So does a run that somebody ends early by setting `stop`.
    """
    started = time.monotonic()

    def broken(why: str) -> Observation:
        return Observation((), time.monotonic() - started, folder, launch=how, broken=why)

    try:
        # The token by which processes are found: one spelling for the engine and for them.
        folder = folder.resolve()
        folder.mkdir(parents=True)
        # Short, since unix sockets below it may have at most 107 characters.
        dirs = CellDirs(folder, Path(tempfile.mkdtemp(prefix="repros-")))
    except OSError as error:
        return broken(f"the cell's folder could not be made: {error}")
    try:
        reaper.of_this_runner.hold(dirs.workdir)
        timeline, main, leftovers = _run(cell, dirs, launch, stop)
        processes = gather(folder, timeline, main.pid, main.returncode)
        _prove_room(folder)
    except OSError as error:
        return broken("interrupted" if stop.is_set() else f"the engine failed: {error}")
    finally:
        shutil.rmtree(dirs.workdir, ignore_errors=True)
        reaper.of_this_runner.release(dirs.workdir)
    if stop.is_set():
        return broken("interrupted")
    if not processes:
        return broken("no process of the cell wrote anything down: the hook did not start")
    return Observation(processes, time.monotonic() - started, folder, launch=how, leftovers=leftovers)


def _run(cell: Cell, dirs: CellDirs, launch: Launch, stop: threading.Event) -> tuple[Timeline, Main, int]:
    """Start the main process, wait for it and its ranks, end what is left."""
    folder = dirs.folder
    main = launch(cell, dirs)
    reaper.of_this_runner.hold(dirs.workdir, main.pid)
    timeline = Timeline(started=time.monotonic())
    try:
        deadline = timeline.started + cell.repro.deadline
        if _wait(main, folder, deadline, stop):
            timeline.main_ended = time.monotonic()
            # A main process that is content leaves ranks that may be slow, or hang as documented.
            until = deadline if main.returncode == 0 else min(deadline, timeline.main_ended + RANK_GRACE)
            if not _let_ranks_end(folder, main.pid, until, stop):
                timeline.deadline = time.monotonic() if until == deadline else None
                timeline.frozen = containment.stopped(folder, main.pid)
                _take_stacks(folder, main.pid)
        elif not stop.is_set():
            timeline.deadline = timeline.cutoff = time.monotonic()
            timeline.frozen = containment.stopped(folder, main.pid)
            _take_stacks(folder, main.pid)
    finally:
        timeline.cutoff = min(timeline.cutoff, time.monotonic())
        timeline.stopped = {process.pid for process in containment.members(folder, main.pid)}
        leftovers = len(timeline.stopped - _pids(folder, "main", "leader", "rank"))
        containment.end(folder, main.pid, containment.HASTY if stop.is_set() else containment.LADDER)
        main.wait()
        logs.compact(folder)
    return timeline, main, leftovers


def _prove_room(folder: Path) -> None:
    """Raise when the disk of the logs is full: then what the processes wanted to write down may be missing."""
    proof = folder / ".room"
    proof.write_bytes(bytes(_ROOM))
    proof.unlink()


def _wait(main: Main, folder: Path, deadline: float, stop: threading.Event) -> bool:
    """Wait for the main process; False when it is still there at the deadline or at a stop."""
    while time.monotonic() < deadline and not stop.is_set():
        if main.wait(timeout=_POLL):
            return True
        logs.trim(folder)
    return False


def _let_ranks_end(folder: Path, session: int, until: float, stop: threading.Event) -> bool:
    """Wait for ranks that outlive the main process, not for helpers and strangers; False when some still live."""
    while time.monotonic() < until and not stop.is_set():
        alive = {process.pid for process in containment.members(folder, session)}
        if not alive & _pids(folder, "rank"):
            return True
        logs.trim(folder)
        time.sleep(_POLL)
    return False


def _take_stacks(folder: Path, session: int) -> None:
    """Ask every process that recorded its start for its stacks and wait until they are written."""
    known = _pids(folder, "main", "rank", "helper")
    asked = [process for process in containment.members(folder, session) if process.pid in known]
    files = [folder / "processes" / str(process.pid) / "stacks.txt" for process in asked]
    containment.signal_all(asked, STACKS_SIGNAL)
    patience = time.monotonic() + _STACKS_PATIENCE
    while time.monotonic() < patience and not all(file.exists() and file.stat().st_size for file in files):
        time.sleep(_POLL / 2)


def _pids(folder: Path, *roles: str) -> set[int]:
    """Return the pids of the processes that recorded one of these roles."""
    wanted = [f'"role": "{role}"'.encode() for role in roles]
    found = set()
    for file in folder.glob("processes/*/events.jsonl"):
        with contextlib.suppress(OSError):
            if any(role in file.read_bytes() for role in wanted):
                found.add(int(file.parent.name))
    return found
