"""Supervision of one job from start to observation: deadline, deadlock, logs, stacks, ending of remaining processes."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from repros.engine.launch import containment, logs, reaper, stacks, untrusted
from repros.engine.launch.deadlock import DeadlockWatch
from repros.engine.launch.gather import Timeline, gather
from repros.engine.launch.job import Job, MainProcess, RunFolders
from repros.engine.launch.removal import remove_tree
from repros.inside.recorder import RANK_GRACE
from repros.model import Launch, Observation, ProcessRole

_PROC = Path("/proc/self")
_POLL = 0.1
_ROOM = 64 * 1024
"""Bytes that must be free on the logs' disk after a run: about the longest record of an exception."""
_MOST_READ = 1_000_000
"""Bytes of a process's events in which it has recorded its role."""


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
        pid = job.main_pid or main.pid
        gathered = gather(folder, timeline, pid, main.returncode, is_trusted=job.is_trusted)
        _refuse_full_disk(folder)
    except OSError as error:
        return broken("interrupted" if stop.is_set() else f"the engine failed: {error}")
    finally:
        remove_tree(folders.workdir)
        reaper.of_this_runner.remove_run(folders.workdir)
    if stop.is_set():
        return broken("interrupted")
    if not gathered.processes:
        reason = "the hook did not start" if timeline.deadline is None else "it had not begun at its deadline"
        if gathered.damaged:
            reason = f"its records cannot be read: {gathered.damaged[0]}"
        return broken(f"no process of the cell wrote any event: {reason}")
    seconds = time.monotonic() - started
    processes, damaged = gathered.processes, gathered.damaged
    return Observation(processes, seconds, folder, launch, None, leftovers, timeline.deadlock, damaged)


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
            if not _wait_for_ranks(job, folder, main.pid, until, stop):
                timeline.deadline = time.monotonic() if until == deadline else None
                _inspect_before_end(job, folder, main.pid, timeline)
        elif not stop.is_set():
            timeline.deadline = time.monotonic()
            timeline.deadlock = deadlock.evidence
            _inspect_before_end(job, folder, main.pid, timeline)
    finally:
        timeline.cutoff = min(timeline.cutoff, time.monotonic())
        timeline.stopped = set(_recording(job, folder, main.pid))
        ranks = _with_role(folder, timeline.stopped, ProcessRole.MAIN, ProcessRole.LEADER, ProcessRole.RANK)
        leftovers = len(timeline.stopped - ranks)
        is_urgent = stop.is_set() or timeline.deadlock is not None
        if timeline.stopped or job.main_pid is not None:
            containment.end(folder, main.pid, containment.HASTY if is_urgent else containment.LADDER)
        main.end()
        logs.compact(folder)
    return timeline, main, leftovers


def _refuse_full_disk(folder: Path) -> None:
    """Raise OSError if the logs' disk is full: events may then be missing."""
    with tempfile.TemporaryFile(dir=folder.parent) as file:  # not where the script writes
        file.write(bytes(_ROOM))
        file.flush()


def _wait(main: MainProcess, folder: Path, deadline: float, stop: threading.Event, deadlock: DeadlockWatch) -> bool:
    """Wait for the main process; return False if it still runs at the deadline, at a stop, or in a deadlock."""
    while time.monotonic() < deadline and not stop.is_set() and not deadlock.is_detected():
        if main.wait(timeout=_POLL):
            return True
        logs.trim(folder)
    return False


def _wait_for_ranks(job: Job, folder: Path, session: int, until: float, stop: threading.Event) -> bool:
    """Wait for ranks that outlive the main process, but not for other processes; return whether all ended."""
    while time.monotonic() < until and not stop.is_set():
        if not _with_role(folder, _recording(job, folder, session), ProcessRole.RANK):
            return True
        logs.trim(folder)
        time.sleep(_POLL)
    return False


def _inspect_before_end(job: Job, folder: Path, session: int, timeline: Timeline) -> None:
    """Find stopped processes, and take the stacks of every process that recorded its start."""
    timeline.cutoff = time.monotonic()  # a rank that waits in the store may take the signal for an error
    members = _recording(job, folder, session)
    timeline.frozen = containment.stopped(members)
    recorded = _with_role(folder, members, ProcessRole.MAIN, ProcessRole.RANK, ProcessRole.HELPER)
    targets = {pid: members[pid] for pid in recorded}
    timeline.stacks_begin = stacks.take(folder, targets).begins


def _recording(job: Job, folder: Path, session: int) -> dict[int, psutil.Process]:
    """Return the living processes of a job by the pids that they record."""
    return containment.by_recorded_pid(folder, session, is_nested=job.main_pid is not None)


def _with_role(folder: Path, pids: Iterable[int], *roles: ProcessRole) -> set[int]:
    """Return the processes among these that have recorded one of these roles."""
    texts = [f'"role": "{role}"'.encode() for role in roles]
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            events = untrusted.read(folder, folder / "processes" / str(pid) / "events.jsonl", _MOST_READ)
            if any(text in events for text in texts):
                found.add(pid)
    return found
