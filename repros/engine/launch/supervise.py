"""Supervision of one job from start to observation: deadline, deadlock, logs, stacks, ending of remaining processes."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from repros.engine.launch import containment, logs, reaper, stacks
from repros.engine.launch.deadlock import DeadlockWatch
from repros.engine.launch.gather import Timeline, gather
from repros.engine.launch.job import Job, MainProcess, RunFolders
from repros.inside.recorder import RANK_GRACE
from repros.model import Launch, Observation, ProcessRole

_PROC = Path("/proc/self")
_POLL = 0.1
_ROOM = 64 * 1024
"""Bytes that must be free on the logs' disk after a run: about the longest record of an exception."""


Start = Callable[[Job, RunFolders], MainProcess]
"""Starts a job's main process in a session of its own."""


def run(job: Job, folder: Path, start: Start, launch: Launch, stop: threading.Event) -> Observation:
    """Run one job in a new `folder` and return when none of its processes lives.

    If the engine cannot do its work (no disk, no process), or if `stop` is set, the observation is `broken`; neither
    raises an exception.
    """
    started = time.monotonic()

    def broken(reason: str) -> Observation:
        return Observation((), time.monotonic() - started, folder, launch=launch, broken=reason)

    if sys.platform == "linux" and not _PROC.is_dir():
        return broken("/proc is not mounted here, so the cell's processes could not be found and ended; mount it")
    try:
        # The path is the token by which processes are found, so the engine and the processes must spell it the same.
        folder = folder.resolve()
        folder.mkdir(parents=True)
        for name in job.output_folders:
            (folder / name).mkdir()
        # Short, as the path of a unix socket in it may have at most 107 characters.
        folders = RunFolders(folder, job.workdir or Path(tempfile.mkdtemp(prefix="repros-")))
    except OSError as error:
        return broken(f"the cell's folder could not be made: {error}")
    try:
        reaper.of_this_runner.add_run(folders.workdir)
        timeline, main, leftovers = _run(job, folders, start, stop)
        processes = gather(folder, timeline, main.pid, main.returncode)
        _refuse_full_disk(folder)
    except OSError as error:
        return broken("interrupted" if stop.is_set() else f"the engine failed: {error}")
    finally:
        shutil.rmtree(folders.workdir, ignore_errors=True)
        reaper.of_this_runner.remove_run(folders.workdir)
    if stop.is_set():
        return broken("interrupted")
    if not processes:
        reason = "the hook did not start" if timeline.deadline is None else "it had not begun at its deadline"
        return broken(f"no process of the cell wrote any event: {reason}")
    seconds = time.monotonic() - started
    return Observation(processes, seconds, folder, launch=launch, leftovers=leftovers, deadlock=timeline.deadlock)


def _run(job: Job, folders: RunFolders, start: Start, stop: threading.Event) -> tuple[Timeline, MainProcess, int]:
    """Start the main process, wait for it and its ranks, end the remaining processes."""
    folder = folders.folder
    main = start(job, folders)
    reaper.of_this_runner.add_run(folders.workdir, main.pid)
    timeline = Timeline(started=time.monotonic())
    try:
        deadline = timeline.started + job.deadline
        deadlock = DeadlockWatch(job, folder, main.pid)
        if _wait(main, folder, deadline, stop, deadlock):
            timeline.main_ended = time.monotonic()
            # After a main process that succeeded, ranks may still be slow, or hang.
            until = deadline if main.returncode == 0 else min(deadline, timeline.main_ended + RANK_GRACE)
            if not _wait_for_ranks(folder, main.pid, until, stop):
                timeline.deadline = time.monotonic() if until == deadline else None
                _inspect_before_end(folder, main.pid, timeline)
        elif not stop.is_set():
            timeline.deadline = time.monotonic()
            timeline.deadlock = deadlock.evidence
            _inspect_before_end(folder, main.pid, timeline)
    finally:
        timeline.cutoff = min(timeline.cutoff, time.monotonic())
        remaining = containment.members(folder, main.pid)
        timeline.stopped = {process.pid for process in remaining}
        leftovers = len(timeline.stopped - _pids(folder, ProcessRole.MAIN, ProcessRole.LEADER, ProcessRole.RANK))
        is_urgent = stop.is_set() or timeline.deadlock is not None
        if remaining:
            containment.end(folder, main.pid, containment.HASTY if is_urgent else containment.LADDER)
        main.end()
        logs.compact(folder)
    return timeline, main, leftovers


def _refuse_full_disk(folder: Path) -> None:
    """Raise OSError if the logs' disk is full: events may then be missing."""
    file = folder / ".room"
    file.write_bytes(bytes(_ROOM))
    file.unlink()


def _wait(main: MainProcess, folder: Path, deadline: float, stop: threading.Event, deadlock: DeadlockWatch) -> bool:
    """Wait for the main process; return False if it still runs at the deadline, at a stop, or in a deadlock."""
    while time.monotonic() < deadline and not stop.is_set() and not deadlock.is_detected():
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


def _inspect_before_end(folder: Path, session: int, timeline: Timeline) -> None:
    """Find stopped processes, and take the stacks of every process that recorded its start."""
    timeline.cutoff = time.monotonic()  # a rank that waits in the store may take the signal for an error
    timeline.frozen = containment.stopped(folder, session)
    recorded = _pids(folder, ProcessRole.MAIN, ProcessRole.RANK, ProcessRole.HELPER)
    targets = [process for process in containment.members(folder, session) if process.pid in recorded]
    timeline.stacks_begin = stacks.take(folder, targets).begins


def _pids(folder: Path, *roles: ProcessRole) -> set[int]:
    """Return the pids of the processes that recorded one of these roles."""
    texts = [f'"role": "{role}"'.encode() for role in roles]
    pids = set()
    for file in folder.glob("processes/*/events.jsonl"):
        with contextlib.suppress(OSError):
            if any(text in file.read_bytes() for text in texts):
                pids.add(int(file.parent.name))
    return pids
