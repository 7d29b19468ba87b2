"""Supervision of one cell from start to observation: deadline, hang, logs, stacks, ending of remaining processes."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from repros.engine.launch import containment, logs, reaper, stacks
from repros.engine.launch.gather import Timeline, gather
from repros.engine.launch.standstill import Standstill
from repros.inside.recorder import RANK_GRACE
from repros.model import Cell, Launch, Observation, ProcessRole

_PROC = Path("/proc/self")
_POLL = 0.1
_ROOM = 64 * 1024
"""Bytes that must be free on the logs' disk after a run; about the longest record of an exception."""


@dataclass(frozen=True)
class CellDirs:
    """The folders of a running cell."""

    folder: Path
    """The cell folder: absolute; holds logs and events; also the token by which the cell's processes are found."""
    workdir: Path
    """The working directory, also for temporary files; deleted afterwards."""

    @property
    def log(self) -> Path:
        """The file for stdout and stderr of the main process."""
        return self.folder / "main.log"


class MainProcess(Protocol):
    """The process that the engine started; its pid is the session's id."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for its end; return whether it ended."""

    def end(self) -> None:
        """Make sure that it has ended; its session may not be there yet.

        Raises:
            OSError: nothing ends it, or its end is not reported.
        """

    @property
    def returncode(self) -> int:
        """Exit code, negative for a signal; valid once `wait` has returned True."""


StartCell = Callable[[Cell, CellDirs], MainProcess]
"""Starts a cell's main process in a session of its own."""


def run(cell: Cell, folder: Path, start: StartCell, launch: Launch, stop: threading.Event) -> Observation:
    """Run one cell in a new `folder` and return when none of its processes lives.

    If the engine cannot do its work (no disk, no process), or if `stop` is set, the observation is `broken`; neither
    raises an exception.
    """
    started = time.monotonic()

    def broken(why: str) -> Observation:
        return Observation((), time.monotonic() - started, folder, launch=launch, broken=why)

    if sys.platform == "linux" and not _PROC.is_dir():
        return broken("/proc is not mounted here, so the cell's processes could not be found and ended; mount it")
    try:
        # The path is the token by which processes are found, so the engine and the processes must spell it the same.
        folder = folder.resolve()
        folder.mkdir(parents=True)
        # Short, as the path of a unix socket in it may have at most 107 characters.
        dirs = CellDirs(folder, Path(tempfile.mkdtemp(prefix="repros-")))
    except OSError as error:
        return broken(f"the cell's folder could not be made: {error}")
    try:
        reaper.of_this_runner.add_cell(dirs.workdir)
        timeline, main, leftovers = _run(cell, dirs, start, stop)
        processes = gather(folder, timeline, main.pid, main.returncode)
        _check_room(folder)
    except OSError as error:
        return broken("interrupted" if stop.is_set() else f"the engine failed: {error}")
    finally:
        shutil.rmtree(dirs.workdir, ignore_errors=True)
        reaper.of_this_runner.remove_cell(dirs.workdir)
    if stop.is_set():
        return broken("interrupted")
    if not processes:
        why = "the hook did not start" if timeline.deadline is None else "it had not begun at its deadline"
        return broken(f"no process of the cell wrote any event: {why}")
    return Observation(
        processes,
        time.monotonic() - started,
        folder,
        launch=launch,
        leftovers=leftovers,
        standstill=timeline.standstill,
    )


def _run(cell: Cell, dirs: CellDirs, start: StartCell, stop: threading.Event) -> tuple[Timeline, MainProcess, int]:
    """Start the main process, wait for it and its ranks, end the remaining processes."""
    folder = dirs.folder
    main = start(cell, dirs)
    reaper.of_this_runner.add_cell(dirs.workdir, main.pid)
    timeline = Timeline(started=time.monotonic())
    try:
        deadline = timeline.started + cell.repro.deadline
        standstill = Standstill(cell, folder, main.pid)
        if _wait(main, folder, deadline, stop, standstill):
            timeline.main_ended = time.monotonic()
            # After a main process that succeeded, ranks may still be slow, or hang as documented.
            until = deadline if main.returncode == 0 else min(deadline, timeline.main_ended + RANK_GRACE)
            if not _wait_for_ranks(folder, main.pid, until, stop):
                timeline.deadline = time.monotonic() if until == deadline else None
                _look_for_the_last_time(folder, main.pid, timeline)
        elif not stop.is_set():
            timeline.deadline = time.monotonic()
            timeline.standstill = standstill.evidence
            _look_for_the_last_time(folder, main.pid, timeline)
    finally:
        timeline.cutoff = min(timeline.cutoff, time.monotonic())
        timeline.stopped = {process.pid for process in containment.members(folder, main.pid)}
        leftovers = len(timeline.stopped - _pids(folder, ProcessRole.MAIN, ProcessRole.LEADER, ProcessRole.RANK))
        is_urgent = stop.is_set() or timeline.standstill is not None
        containment.end(folder, main.pid, containment.HASTY if is_urgent else containment.LADDER)
        main.end()
        logs.compact(folder)
    return timeline, main, leftovers


def _check_room(folder: Path) -> None:
    """Raise OSError if the logs' disk is full: events may then be missing."""
    file = folder / ".room"
    file.write_bytes(bytes(_ROOM))
    file.unlink()


def _wait(main: MainProcess, folder: Path, deadline: float, stop: threading.Event, standstill: Standstill) -> bool:
    """Wait for the main process; return False if it still runs at the deadline, at a stop, or as the cell hangs."""
    while time.monotonic() < deadline and not stop.is_set() and not standstill.is_seen():
        if main.wait(timeout=_POLL):
            return True
        logs.trim(folder)
    return False


def _wait_for_ranks(folder: Path, session: int, until: float, stop: threading.Event) -> bool:
    """Wait for ranks that outlive the main process, but not for other processes; return whether all ended."""
    while time.monotonic() < until and not stop.is_set():
        alive = {process.pid for process in containment.members(folder, session)}
        if not alive & _pids(folder, ProcessRole.RANK):
            return True
        logs.trim(folder)
        time.sleep(_POLL)
    return False


def _look_for_the_last_time(folder: Path, session: int, timeline: Timeline) -> None:
    """Look for stopped processes, and take the stacks of every process that recorded its start."""
    timeline.cutoff = time.monotonic()  # a rank that waits in the store may take the signal for an error
    timeline.frozen = containment.stopped(folder, session)
    known = _pids(folder, ProcessRole.MAIN, ProcessRole.RANK, ProcessRole.HELPER)
    targets = [process for process in containment.members(folder, session) if process.pid in known]
    timeline.stacks_begin = stacks.take(folder, targets).begins


def _pids(folder: Path, *roles: ProcessRole) -> set[int]:
    """Return the pids of the processes that recorded one of these roles."""
    wanted = [f'"role": "{role}"'.encode() for role in roles]
    found = set()
    for file in folder.glob("processes/*/events.jsonl"):
        with contextlib.suppress(OSError):
            if any(role in file.read_bytes() for role in wanted):
                found.add(int(file.parent.name))
    return found
