"""Runs on one release after another, each installed into the same copy of the stack's environment."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

from repros.engine.environments.processes import Processes
from repros.engine.environments.releases import PackageRelease
from repros.engine.environments.uv import UvError
from repros.engine.probe import ProbeError, probe
from repros.model import Device, Environment
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.examine import Examination
from repros.scripts.bisect.imports import ImportFailure, ImportMemory, try_imports
from repros.scripts.bisect.script.question import ReleaseQuestion, ScriptQuestion
from repros.scripts.bisect.search import Answer
from repros.scripts.bisect.swap import Swap


class ReleaseRunner:
    """Runner of a question's program with one release after another, all in one environment."""

    def __init__(
        self,
        question: ReleaseQuestion,
        stacks_own: Environment,
        python: Path,
        processes: Processes,
    ) -> None:
        """Take over a copy of the stack's environment.

        Args:
            question: the question.
            stacks_own: the stack's environment, as it was probed.
            python: the interpreter of the copy.
            processes: receives the processes that are started.
        """
        self._question = question
        self._stacks_own = stacks_own
        self._python = python
        self._processes = processes
        imported = question.task.needs.packages if isinstance(question, ScriptQuestion) else None
        self._swap = Swap(question.stack, question.package, python, imported)

    def probe(
        self, release: PackageRelease, memory: ImportMemory, logs: Path, gpus: tuple[str, ...] = ()
    ) -> ReleaseAnswer:
        """Install a release, run until enough runs agree, and return the answer.

        Args:
            release: the release.
            memory: the releases that could not be imported before.
            logs: a folder for its logs, which it makes.
            gpus: the GPUs to use; empty: the first of this machine.

        Raises:
            CancelledError: the bisection has ended.
        """
        try:
            failure, note = self._install(release, memory)
        except UvError as error:
            return no_answer(self._question, release, f"cannot be installed: {error}")
        if failure:
            return no_answer(self._question, release, str(failure))
        try:
            environment = self._describe_environment()
        except ProbeError as error:
            return no_answer(self._question, release, str(error))
        if (reason := self._question.why_unavailable(environment)) is not None:
            return no_answer(self._question, release, f"unavailable: {reason}")
        result = self._examine(environment, gpus, logs)
        versions = self._relevant_versions(environment) if result.lasting else {}
        why = f"{result.why}{f' ({note})' if note else ''}"
        key = self._question.key(release)
        return ReleaseAnswer(str(release.version), result.answer, why, versions, key, result.shown)

    def _examine(self, environment: Environment, gpus: tuple[str, ...], logs: Path) -> Examination:
        return self._question.examine(environment, gpus, logs, self._processes)

    def _relevant_versions(self, environment: Environment) -> dict[str, str]:
        names = {self._question.package, "torch", *self._question.reported_packages}
        return {name: environment.versions[name] for name in sorted(names) if name in environment.versions}

    def _install(self, release: PackageRelease, memory: ImportMemory) -> tuple[ImportFailure | None, str]:
        """Install a release and import the script's modules; if that fails, with the dependencies of the release's day.

        Returns:
            The remaining failure, and a note on the installed dependencies; empty for those of the stack.
        """
        name, day = self._question.name(release), release.date
        first = recall(self._question, release, memory)
        if first is None:
            left_out = self._swap.install(release)
            first = self._import()
            if first is None:
                return None, f"without {', '.join(left_out)}, which conflict with it" if left_out else ""
            memory.keep(name, first)
        note = f"with the dependencies of {day}"
        try:
            self._swap.install(release, as_of_its_day=True)
            left = self._import(note)
        except UvError as error:
            left = replace(first, note="those of its day cannot be resolved", lasting=error.is_without_solution)
        if left:
            memory.keep(name, left, day)
        return left, note

    def _import(self, note: str = "") -> ImportFailure | None:
        """Return the first failure of the imports, unless it is the documented one, which then has to be run."""
        question = self._question
        failure = try_imports(self._python, question.modules, self._processes)
        return None if failure is None or question.is_documented(failure) else replace(failure, note=note)

    def _describe_environment(self) -> Environment:
        """Return the environment as it is now; it is probed again only after a change of torch."""
        versions = self._swap.versions
        if versions.get("torch") == self._stacks_own.versions.get("torch"):
            return replace(self._stacks_own, python=self._python, versions=versions)
        return probe(self._python, self._question.stack.name, sim=self._question.device is Device.SIM)


def recall(
    question: ReleaseQuestion, release: PackageRelease, memory: ImportMemory, as_of: dt.date | None = None
) -> ImportFailure | None:
    """Return why another bisection could not import a release, unless that is the documented failure."""
    known = memory.find(question.name(release), question.modules, as_of)
    return None if known is None or question.is_documented(known) else known


def no_answer(question: ReleaseQuestion, release: PackageRelease, why: str) -> ReleaseAnswer:
    """Return the answer, without versions, for a release on which nothing was run."""
    return ReleaseAnswer(str(release.version), Answer.UNKNOWN, why, {}, question.key(release))
