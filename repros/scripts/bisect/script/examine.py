"""The examination of one release by a script: run until enough runs show the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.engine.environments.processes import Processes
from repros.model import Environment, Observation
from repros.model.errors import ReprosError
from repros.scripts.bisect.examine import Examination, count_equal
from repros.scripts.bisect.script.patterns import Patterns
from repros.scripts.bisect.search import Answer, confirm
from repros.scripts.try_.job import ObservedRun, run_task
from repros.scripts.try_.known import find_known, read_logs
from repros.scripts.try_.outcome import ScriptOutcome, Status, classify
from repros.scripts.try_.task import Task

BOTH = "both --good and --bad"
"""The label of an output that matches both patterns."""


@dataclass(frozen=True)
class LabelledRun:
    """What one run showed."""

    shown: str
    """Equal for two releases that show the same; empty if the run shows nothing about the release."""
    detail: str = ""
    """Where the ranks wait, how the run ended, or why it shows nothing."""
    lasting: bool = True
    """Whether another run would end alike; not if the machine may be to blame."""

    @property
    def text(self) -> str:
        """Both in a line."""
        return ", ".join(filter(None, (self.shown, self.detail)))


def examine_script(
    task: Task,
    patterns: Patterns,
    package: str,
    runs: int,
    environment: Environment,
    folder: Path,
    processes: Processes,
) -> Examination:
    """Run a program until enough runs show the same.

    Args:
        task: the program, and how to run it.
        patterns: searched in its output.
        package: the package whose releases are compared; its version in messages is ignored.
        runs: number of runs that must show the same, of at most one less than twice as many.
        environment: the environment with the release.
        folder: for logs.
        processes: receives the processes that are started.

    Raises:
        CancelledError: the bisection has ended.
    """
    labelled: list[LabelledRun] = []

    def run() -> str:
        observed = run_task(task, environment, folder / str(len(labelled) + 1), processes.stopped)
        processes.check()
        labelled.append(_label(task, patterns, package, environment, observed))
        return labelled[-1].shown

    shown = confirm(run, runs, 2 * runs - 1, nothing="")
    why = count_equal(run.text for run in labelled)
    return Examination(Answer.UNKNOWN, why, shown, lasting=bool(shown) or all(run.lasting for run in labelled))


def _label(
    task: Task, patterns: Patterns, package: str, environment: Environment, observed: ObservedRun
) -> LabelledRun:
    observation = observed.observation
    outcome = classify(observation, task.options.ranks, observed.workdir)
    if outcome.machine_failed or outcome.status is Status.INCOMPLETE:
        return LabelledRun("", f"not judged: {outcome.note}", lasting=False)
    ending = _signature(outcome, environment.versions.get(package, ""), task.limits.seconds)
    labels = _matching_labels(patterns, observation)
    if len(labels) > 1:
        return LabelledRun(BOTH)
    if labels:
        return LabelledRun(labels[0], "" if outcome.status is Status.CLEAN else f"then {ending}")
    checks = _watch_checks(environment, observed) if outcome.status is Status.CLEAN else ()
    return LabelledRun("".join((ending, *(f", {check} (watch)" for check in checks))), _waits(outcome))


def _signature(outcome: ScriptOutcome, version: str, seconds: float) -> str:
    """Return how a run ended, without the release's version and the time."""
    if outcome.status is Status.TIME_LIMIT:
        return f"still running after {seconds:g} s"
    if outcome.status is Status.CLEAN:
        return "clean"
    signature = outcome.signature or outcome.status.value
    return re.sub(rf"(?<![\w.]){re.escape(version)}(?!\w|\.\d)", "{version}", signature) if version else signature


def _waits(outcome: ScriptOutcome) -> str:
    """Return the call in which each rank waits, in a deadlock."""
    if outcome.status is not Status.HANG:
        return ""
    calls = ((location.rank, location.call.partition(" ")[0]) for location in outcome.locations if location.call)
    return ", ".join(f"{rank} in {call}" for rank, call in calls)


def _matching_labels(patterns: Patterns, observation: Observation) -> Sequence[str]:
    if not patterns.labels:
        return ()
    try:
        output = "\n".join(line for _, line in read_logs(observation))
    except ReprosError:  # the output is no text, so it matches no pattern
        return ()
    return patterns.found_in(output)


def _watch_checks(environment: Environment, observed: ObservedRun) -> Sequence[str]:
    """Return the checks of the watch that reported something in a run with a clean exit."""
    try:
        known = find_known(observed, (), environment)
    except ReprosError:
        return ()
    return sorted({finding.check for finding, _ in known.findings})
