"""One release examined: a program run until enough runs show the same, and what that is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from repros.engine.environments.processes import Processes
from repros.engine.judge import judge
from repros.engine.launch import supervise
from repros.model import Cell, Launch, Observation, Verdict
from repros.model.errors import ReprosError
from repros.scripts.bisect.runner import Examine, Examined, count_equal
from repros.scripts.bisect.script.marks import Marks
from repros.scripts.bisect.search import Answer, confirm
from repros.scripts.try_.known import find_known, read_logs
from repros.scripts.try_.run import Task
from repros.scripts.try_.sight import Sight, Status, see

BOTH = "both --good and --bad"
"""What a program shows whose output holds both marks."""


@dataclass(frozen=True)
class Seen:
    """What one run showed."""

    shown: str
    """Equal for two releases if they show the same; empty if the run says nothing."""
    detail: str = ""
    """What else is worth saying: where the ranks wait, how it ended, why it says nothing."""
    lasting: bool = True
    """Whether another run would end alike; not if the machine may be to blame."""

    @property
    def text(self) -> str:
        """Both in a line."""
        return ", ".join(filter(None, (self.shown, self.detail)))


def examiner(task: Task, marks: Marks, package: str, runs: int) -> Examine:
    """Return what runs a program on a release.

    Args:
        task: the program, and how to run it.
        marks: what to look for in its output.
        package: the package whose releases are compared; messages that name its version are taken for the same.
        runs: how many runs must show the same, of at most one less than twice as many.
    """
    return partial(_examine, task, marks, package, runs)


def _examine(
    task: Task, marks: Marks, package: str, runs: int, cell: Cell, folder: Path, processes: Processes
) -> Examined:
    """Run a program until enough runs show the same; an :data:`repros.scripts.bisect.runner.Examine`."""
    seen: list[Seen] = []
    version = cell.environment.versions.get(package, "")

    def run() -> str:
        seen.append(_run(task, marks, version, cell, folder / str(len(seen) + 1), processes))
        return seen[-1].shown

    shown = confirm(run, runs, 2 * runs - 1, nothing="")
    why = count_equal(each.text for each in seen)
    return Examined(Answer.UNKNOWN, why, shown, lasting=bool(shown) or all(each.lasting for each in seen))


def _run(task: Task, marks: Marks, version: str, cell: Cell, folder: Path, processes: Processes) -> Seen:
    start = task.start()
    observation = supervise.run(cell, folder, start, Launch.COLD, processes.stopped)
    processes.check()
    result = judge(cell, observation)
    sight = see(result, start.folder)
    if result.verdict is Verdict.INFRA or sight.status in {Status.NOT_JUDGED, Status.INCOMPLETE}:
        return Seen("", f"not judged: {sight.note or result.reason}", lasting=False)
    ended = _signature(sight, version, task.limits.seconds)
    found = _found_marks(marks, observation)
    if len(found) > 1:
        return Seen(BOTH)
    if found:
        return Seen(found[0], "" if sight.status is Status.CLEAN else f"then {ended}")
    checks = _watch_found(cell, observation, start.folder) if sight.status is Status.CLEAN else ()
    return Seen("".join((ended, *(f", {check} (watch)" for check in checks))), _detail(sight))


def _signature(sight: Sight, version: str, seconds: float) -> str:
    """Return how a run ended, without what differs between two releases that end alike."""
    if sight.status is Status.TIME_LIMIT:
        return f"still running after {seconds:g} s"
    if sight.status is Status.CLEAN:
        return "clean"
    signature = sight.signature or sight.status.value
    return re.sub(rf"(?<![\w.]){re.escape(version)}(?!\w|\.\d)", "{version}", signature) if version else signature


def _detail(sight: Sight) -> str:
    """Return where each rank waits, if they wait for each other."""
    if sight.status is not Status.HANG:
        return ""
    return ", ".join(f"{place.rank} in {place.call.partition(' ')[0]}" for place in sight.places if place.call)


def _found_marks(marks: Marks, observation: Observation) -> Sequence[str]:
    if not marks.labels:
        return ()
    try:
        written = "\n".join(line for _, line in read_logs(observation))
    except ReprosError:  # no text, so none of the user's
        return ()
    return marks.found_in(written)


def _watch_found(cell: Cell, observation: Observation, home: Path | None) -> Sequence[str]:
    """Return the checks of the watch that found something in a run that nothing else shows to be wrong."""
    try:
        known = find_known(observation, (), cell.environment, home)
    except ReprosError:
        return ()
    return sorted({finding.check for finding, _ in known.findings})
