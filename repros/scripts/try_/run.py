"""Runs of a script on stacks: the environments made, the script run in the sandbox, and the outcome classified."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.engine.environment import PreparedStack, Targets, prepare_stacks
from repros.engine.environments.extended import ExtendedStack, VersionChange
from repros.engine.environments.store import short_name
from repros.engine.own_folder import new_log_folder
from repros.model import Environment, Repro
from repros.model.errors import ReprosError
from repros.scripts.try_.job import ObservedRun, device_of, run_task
from repros.scripts.try_.known import Known, find_known, read_logs
from repros.scripts.try_.needs import find_lacking, find_missing, find_other_releases
from repros.scripts.try_.orphans import adopted
from repros.scripts.try_.outcome import ScriptOutcome, Status, classify
from repros.scripts.try_.reported import Comparison, compare_with_issue
from repros.scripts.try_.task import Task

_DEFAULT_STACK = "current"
LOGS = Path(".repros/try.jsonl")
"""Path of a results file, next to which the logs are written."""


@dataclass(frozen=True)
class ScriptRun:
    """A script's run on one stack."""

    environment: Environment
    outcome: ScriptOutcome
    versions: Mapping[str, str]
    """Installed versions of the packages that the script needs, and of those that `wanted` has changed."""
    other_releases: tuple[str, ...] = ()
    """Releases that the script requires and the stack has in another version."""
    wanted: tuple[str, ...] = ()
    """The requirements that extend the stack; empty for the stack itself."""
    changes: tuple[VersionChange, ...] = ()
    """The packages that these have changed."""
    lacks: tuple[str, ...] = ()
    """Requirements whose absence prevented the run, or failed an import."""
    observed: ObservedRun | None = None
    """None if it did not run."""
    known: Known | None = None
    """Documented failures in it; None if it did not run, or was not compared."""
    comparison: Comparison | None = None
    """Whether it did what its issue reports; None without an issue."""

    @property
    def stack(self) -> str:
        """The stack's name."""
        return self.environment.name

    @property
    def main_versions(self) -> Mapping[str, str]:
        """The versions without those of packages that were only added as dependencies."""
        asked = {canonicalize_name(Requirement(text).name) for text in self.wanted}
        added = {change.name for change in self.changes if change.before is None} - asked
        return {name: version for name, version in self.versions.items() if name not in added}

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.observed.observation.seconds if self.observed else 0.0

    @property
    def folder(self) -> Path | None:
        """The folder of its logs."""
        return self.observed.observation.folder if self.observed else None

    @property
    def is_clean(self) -> bool:
        """Whether it ended without a failure and shows nothing documented."""
        matches = self.known is not None and (self.known.match.candidates or self.known.findings)
        return self.outcome.status is Status.CLEAN and not matches


def run_on_stacks(
    task: Task,
    where: Targets,
    catalogue: Iterable[Repro] | None = None,
    report_progress: Callable[[str], None] = lambda _: None,
    on_start: Callable[[Task], None] = lambda _: None,
) -> Iterator[ScriptRun]:
    """Run a script on each stack and yield each run as soon as it is over.

    An interruption ends all processes of the script, and is passed on.

    Args:
        task: what to run.
        where: the stacks.
        catalogue: the documented failures to look for; None for no search.
        report_progress: receives lines of progress.
        on_start: called with the task before the script runs for the first time.

    Raises:
        ReprosError: there is no such stack.
    """
    runs, has_started = new_log_folder(LOGS), False
    with prepare_for(task, where, report_progress) as stacks:
        for prepared in stacks:
            reason = why_not_runnable(task, prepared)
            if reason is not None:
                yield _script_run(task, prepared, ScriptOutcome(Status.NOT_RUN, None, note=reason))
                continue
            if not has_started:
                on_start(task)
            has_started = True
            report_progress(f"running on {prepared.environment.name}")
            observed = _run_interruptibly(task, prepared.environment, runs / short_name(prepared.environment.name))
            yield _describe(task, prepared, observed, catalogue)


def _describe(
    task: Task, prepared: PreparedStack, observed: ObservedRun, catalogue: Iterable[Repro] | None
) -> ScriptRun:
    """Return a run with its outcome, the documented failures in it and its comparison with the task's issue.

    Output that is no text has neither, and adds a note to the outcome.
    """
    known, problem = None, None
    lines: list[str] | None = []
    try:
        if task.issue is not None:
            lines = [text for _, text in read_logs(observed.observation)]
        if catalogue is not None:
            known = find_known(observed, catalogue, prepared.environment)
    except ReprosError as error:
        lines, problem = None, str(error)
    outcome = classify(observed.observation, task.options.ranks, observed.workdir)
    if problem is not None:
        outcome = replace(outcome, note="; ".join(filter(None, (outcome.note, problem))))
    return _script_run(task, prepared, outcome, lines, observed, known)


def prepare_for(
    task: Task, where: Targets, report_progress: Callable[[str], None]
) -> contextlib.AbstractContextManager[list[PreparedStack]]:
    """Make and probe the environments of the stacks that a script is to run on.

    Raises:
        ReprosError: there is no such stack.
    """
    stacks = where.stacks_for(_DEFAULT_STACK)
    return prepare_stacks(stacks, task.needs.listed, device_of(task), task.options.ranks, report_progress)


def why_not_runnable(task: Task, prepared: PreparedStack) -> str | None:
    """Return why a script cannot run on a stack; None if it can."""
    environment = prepared.environment
    if not environment.broken and (lacking := find_lacking(task.needs, environment)):
        return f"{environment.name} lacks {', '.join(lacking.values())}, which the script needs"
    return prepared.unavailable


def _run_interruptibly(task: Task, environment: Environment, folder: Path) -> ObservedRun:
    """Run a script in a thread: an interruption then reaches this thread, and ends the script's processes at once."""
    stop = threading.Event()
    with adopted(), ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_task, task, environment, folder, stop)
        try:
            return running.result()
        finally:
            stop.set()


def _script_run(
    task: Task,
    prepared: PreparedStack,
    outcome: ScriptOutcome,
    lines: Iterable[str] | None = (),
    observed: ObservedRun | None = None,
    known: Known | None = None,
) -> ScriptRun:
    stack, environment = prepared.stack, prepared.environment
    extended = stack if isinstance(stack, ExtendedStack) else None
    changes = extended.changes if extended else ()
    names = dict.fromkeys(("torch", *task.needs.packages, *(change.name for change in changes)))
    versions = environment.versions
    return ScriptRun(
        environment,
        outcome,
        {name: versions[name] for name in names if name in versions},
        find_other_releases(task.needs, environment),
        tuple(map(str, extended.wanted)) if extended else (),
        changes,
        _lacks(task, environment, outcome),
        observed,
        known,
        None if task.issue is None or lines is None else compare_with_issue(task.issue, outcome, lines),
    )


def _lacks(task: Task, environment: Environment, outcome: ScriptOutcome) -> tuple[str, ...]:
    if outcome.status is Status.NOT_RUN:
        return () if environment.broken else tuple(find_lacking(task.needs, environment))
    missing = find_missing(((link.type, link.message) for link in outcome.chain), environment)
    is_own = missing in {path.stem for path in task.script.left_out}  # a module of the user's, which no index has
    return (missing,) if missing and not is_own else ()
