"""Running a question's cell on one release after another: installed into a copy of the stack's environment."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from repros.engine.cells import is_warm, run_cell
from repros.engine.environments.processes import Processes
from repros.engine.environments.releases import PackageRelease
from repros.engine.environments.uv import UvError
from repros.engine.launch import Servers
from repros.engine.plan import plan
from repros.engine.probe import ProbeError, probe
from repros.model import Cell, CellResult, Device, Environment, Unavailable
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.imports import ImportFailure, ImportMemory, is_documented, try_imports
from repros.scripts.bisect.question import MAX_RUNS, NEEDED_RUNS, ReleaseQuestion
from repros.scripts.bisect.search import Answer, confirm
from repros.scripts.bisect.swap import Swap


@dataclass(frozen=True)
class Examined:
    """What the runs of a cell on one release showed."""

    answer: Answer
    why: str
    """The verdicts of the runs and what they showed."""
    shown: str = ""
    """As :attr:`repros.scripts.bisect.answers.ReleaseAnswer.shown`."""
    lasting: bool = True
    """Whether further runs would end alike; not if the machine may be to blame."""


Examine = Callable[[Cell, Path, Processes], Examined]
"""Runs a cell on a release until enough runs agree: the cell, a folder for logs, the processes to begin it with.

Raises:
    CancelledError: the bisection has ended.
"""


class ReleaseRunner:
    """Runner of a question's cell with one release after another, all in one environment."""

    def __init__(
        self,
        question: ReleaseQuestion,
        stacks_own: Environment,
        python: Path,
        processes: Processes,
        examiner: Examine | None = None,
    ) -> None:
        """Take a copy of the stack's environment.

        Args:
            question: the question.
            stacks_own: the stack's environment, as it was probed.
            python: the interpreter of the copy.
            processes: receives what is started.
            examiner: runs the cell on each release; None: :func:`examine`.
        """
        self._question = question
        self._stacks_own = stacks_own
        self._python = python
        self._processes = processes
        self._examine = examiner or examine
        self._swap = Swap(question.stack, question.package, python)

    def probe(
        self, release: PackageRelease, memory: ImportMemory, logs: Path, gpus: tuple[str, ...] = ()
    ) -> ReleaseAnswer:
        """Install a release, run the cell until enough runs agree, and return the answer.

        Args:
            release: the release.
            memory: what could not be imported before.
            logs: a folder for its logs, which it makes.
            gpus: the GPUs for the cell; empty: the first of this machine.

        Raises:
            CancelledError: the bisection has ended.
        """
        try:
            failure, note = self._install(release, memory)
        except UvError as error:
            return no_answer(self._question, release, f"cannot be installed: {error}")
        cell = str(failure) if failure else self._prepare_cell()
        if isinstance(cell, str):
            return no_answer(self._question, release, cell)
        found = self._examine(replace(cell, gpus=gpus), logs, self._processes)
        versions = _relevant_versions(cell, self._question.package) if found.lasting else {}
        why = f"{found.why}{f' ({note})' if note else ''}"
        key = self._question.key(release)
        return ReleaseAnswer(str(release.version), found.answer, why, versions, key, found.shown)

    def _install(self, release: PackageRelease, memory: ImportMemory) -> tuple[ImportFailure | None, str]:
        """Install a release and import the script's modules; if that fails, with the dependencies of the release's day.

        Returns:
            The failure that is left, and a note on what was installed; empty if that is the stack's own.
        """
        name, day = self._question.name(release), release.date
        first = recall(self._question, release, memory)
        if first is None:
            self._swap.install(release)
            first = self._import()
            if first is None:
                return None, ""
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
        return None if failure is None or is_documented(failure, question.signature) else replace(failure, note=note)

    def _prepare_cell(self) -> Cell | str:
        """Return the cell in the environment as it is, or the reason why there is none."""
        try:
            environment = self._describe_environment()
        except ProbeError as error:
            return str(error)
        (item,) = plan([self._question.spec], lambda _: [environment])
        return f"unavailable: {item.reason}" if isinstance(item, Unavailable) else item

    def _describe_environment(self) -> Environment:
        """Return the environment as it is; only another torch has to be asked for its devices."""
        versions = self._swap.versions
        if versions.get("torch") == self._stacks_own.versions.get("torch"):
            return replace(self._stacks_own, python=self._python, versions=versions)
        return probe(self._python, self._question.stack.name, sim=self._question.spec.device is Device.SIM)


def examine(cell: Cell, folder: Path, processes: Processes) -> Examined:
    """Run a cell until enough runs show the documented failure, or enough are free of it; an :data:`Examine`."""
    results: list[CellResult] = []
    with Servers(folder / "servers") as servers, processes.ended_by(servers.close):
        warm = servers if is_warm(cell) else None

        def run() -> Answer:
            log = folder / str(len(results) + 1)
            results.append(run_cell(cell, log, processes.stopped, servers=warm))
            processes.check()
            return _answer(results[-1])

        answer = confirm(run, NEEDED_RUNS, MAX_RUNS, nothing=Answer.UNKNOWN)
    return Examined(answer, _describe_results(results))


def recall(
    question: ReleaseQuestion, release: PackageRelease, memory: ImportMemory, as_of: dt.date | None = None
) -> ImportFailure | None:
    """Return why another bisection could not import a release, unless that is the documented failure."""
    known = memory.find(question.name(release), question.modules, as_of)
    return None if known is None or is_documented(known, question.signature) else known


def no_answer(question: ReleaseQuestion, release: PackageRelease, why: str) -> ReleaseAnswer:
    """Return the answer for a release on which no cell was run, so without versions."""
    return ReleaseAnswer(str(release.version), Answer.UNKNOWN, why, {}, question.key(release))


def _answer(result: CellResult) -> Answer:
    """Return the answer of one run; a failure other than the documented one gives none."""
    if result.verdict.shows_failure:
        return Answer.YES
    return Answer.NO if result.verdict.ran_clean else Answer.UNKNOWN


def _describe_results(results: Sequence[CellResult]) -> str:
    """Return what the runs showed, with equal results counted: `2 x RuntimeError: ...`."""
    return count_equal(
        result.signature or "ran to its end"
        if _answer(result) is not Answer.UNKNOWN
        else f"{result.verdict}: {result.reason}"
        for result in results
    )


def count_equal(texts: Iterable[str]) -> str:
    """Return texts with equal ones counted: `2 x RuntimeError: ...; 1 x ran to its end`."""
    counts = Counter(texts)
    return "; ".join(f"{number} x {text}" for text, number in counts.items())


def _relevant_versions(cell: Cell, package: str) -> dict[str, str]:
    names = {package, "torch", *cell.repro.named_packages}
    return {name: cell.environment.versions[name] for name in sorted(names) if name in cell.environment.versions}
