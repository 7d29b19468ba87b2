"""Runs of candidates: smaller scripts on one stack, each in the sandbox of `repros try`."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Self

from repros.diagnose.issue.source import imported_names
from repros.engine.environment import Targets
from repros.engine.launch import logs
from repros.engine.launch.removal import remove_tree
from repros.engine.launch.warm import modules_of
from repros.model import Environment, Observation
from repros.model.errors import ReprosError
from repros.scripts.reduce.failure import Failure, failure_of
from repros.scripts.try_.job import run_task
from repros.scripts.try_.needs import package_of
from repros.scripts.try_.orphans import adopted
from repros.scripts.try_.outcome import ScriptOutcome, Status, classify, logs_of
from repros.scripts.try_.run import prepare_for, why_not_runnable
from repros.scripts.try_.servers import SandboxServers
from repros.scripts.try_.task import Task

_LEAST_TIMEOUT, _TIMEOUT_FACTOR, _TIMEOUT_MARGIN = 15.0, 3.0, 5.0
"""Timeout of a candidate in seconds: a multiple of the original's run time plus a margin, and at least the first."""


class CandidateRunner:
    """Runs scripts on one stack, several at once, each in a process that is forked from a server with the libraries."""

    def __init__(self, task: Task, environment: Environment, runs: Path, texts: tuple[str, ...] = ()) -> None:
        """Prepare without running anything.

        Args:
            task: the original script, and how it runs.
            environment: the environment to run in.
            runs: folder for logs.
            texts: the texts that the output must contain; empty if another failure is looked for.
        """
        self.task, self.texts = replace(task, options=replace(task.options, watch=False)), texts
        self._environment, self._runs = environment, runs
        self._numbers = itertools.count(1)
        self._servers = SandboxServers(runs / "servers", network=not task.sandbox.network, gpus=task.options.gpus)
        self._modules = self._find_modules()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._is_warm = not task.options.own and task.sandbox.can_fork

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    def stop(self) -> None:
        """End the scripts that run now; they count as not failing."""
        self._stop.set()
        self._stop = threading.Event()

    def run_original(self) -> tuple[Failure | None, ScriptOutcome, float]:
        """Run the original, cold as `repros try` does and then forked; return its failure, its outcome, and seconds.

        If both runs do not fail alike, candidates run cold, each with its own imports.
        """
        source, ranks = self.task.python_script.source, self.task.options.ranks
        failure, outcome, seconds = self.run(source, ranks, warm=False)
        if self._is_warm and (failure is not None or outcome.status is Status.CLEAN):
            with contextlib.suppress(ReprosError):
                warm_failure, warm_outcome, warm_seconds = self.run(source, ranks)
                self._is_warm = (warm_failure, warm_outcome.status) == (failure, outcome.status)
                seconds = warm_seconds if self._is_warm else seconds
        limits = self.task.limits
        timeout = min(limits.seconds, max(_LEAST_TIMEOUT, _TIMEOUT_FACTOR * seconds + _TIMEOUT_MARGIN))
        self.task = replace(self.task, limits=replace(limits, seconds=timeout))
        return failure, outcome, seconds

    @property
    def stack(self) -> str:
        """The name of the stack."""
        return self._environment.name

    @property
    def is_warm(self) -> bool:
        """Whether candidates are forked from a server that has imported the libraries."""
        return self._is_warm

    def is_clean(self, source: str, ranks: int, *, warm: bool | None = None) -> bool:
        """Return whether a script has a clean exit here, and its output does not contain the texts."""
        failure, outcome, _ = self.run(source, ranks, warm=warm)
        return failure is None and outcome.status is Status.CLEAN

    def run(self, source: str, ranks: int, *, warm: bool | None = None) -> tuple[Failure | None, ScriptOutcome, float]:
        """Run a script and return its failure, its outcome, and the seconds that it took.

        Raises:
            ReprosError: the engine could not do its work.
        """
        task = replace(
            self.task,
            script=replace(self.task.python_script, source=source),
            options=replace(self.task.options, ranks=ranks),
        )
        folder = self._runs / f"{next(self._numbers)}"
        is_warm = self._is_warm if warm is None else warm
        servers = self._servers if is_warm else None
        with contextlib.nullcontext() if is_warm else self._alone(), ThreadPoolExecutor(1) as pool:
            stop = self._stop
            running = pool.submit(run_task, task, self._environment, folder, stop, servers, self._modules)
            try:
                observed = running.result()
            except BaseException:
                stop.set()
                raise
        try:
            outcome = classify(observed.observation, ranks, observed.workdir)
            output = _output(observed.observation) if self.texts else ""
            failure = failure_of(outcome, task.script.name, source, output, self.texts)
        finally:
            remove_tree(folder)
        return failure, outcome, observed.observation.seconds

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Run one cold script at a time: orphans of any script are killed when one ends."""
        with self._lock, adopted():
            yield

    def _find_modules(self) -> tuple[str, ...]:
        """Return what servers import: the script's modules, those that packages import late, and lazy names."""
        script = self.task.python_script
        late = modules_of(dict.fromkeys(map(package_of, script.modules)), self._environment)
        local = {path.stem for path in script.local_modules}
        names = imported_names(script.source)
        lazy = [f"{module}:{name}" for module, name in names if module in script.modules and module not in local]
        return tuple(dict.fromkeys([*script.modules, *late, *lazy]))


@contextlib.contextmanager
def open_runner(
    task: Task, where: Targets, runs: Path, texts: tuple[str, ...], report_progress: Callable[[str], None]
) -> Iterator[CandidateRunner]:
    """Make a stack's environment and yield a runner of candidates on it.

    Raises:
        ReprosError: there is no such stack, or the script cannot run there.
    """
    with prepare_for(task, where, report_progress) as stacks:
        (prepared,) = stacks
        if (reason := why_not_runnable(task, prepared)) is not None:
            raise ReprosError(f"{reason}; expected a stack on which the script runs: repros stacks lists them.")
        with CandidateRunner(task, prepared.environment, runs, texts) as runner:
            yield runner


def _output(observation: Observation) -> str:
    files = logs_of(observation.processes, observation.folder)
    return "\n".join(log.decode("utf-8", "replace") for log in logs.read(observation.folder, files))
