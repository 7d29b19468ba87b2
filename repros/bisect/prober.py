"""Probing of releases: installing each in a copy of the stack's environment and running the cell there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from repros import environments
from repros.bisect.answers import ReleaseAnswer, append_answer, read_answers
from repros.bisect.imports import ImportFailure, ImportMemory, is_documented, try_imports
from repros.bisect.question import MAX_RUNS, NEEDED_RUNS, Question
from repros.bisect.search import Answer, confirm
from repros.bisect.swap import Swap
from repros.engine.cells import is_warm, run_cell
from repros.engine.launch import Servers
from repros.engine.own_folder import new_log_folder
from repros.engine.plan import plan
from repros.engine.probe import ProbeError, probe
from repros.environments.releases import Release
from repros.environments.uv import Say, UvError
from repros.model import Cell, Device, Result, Unavailable


class Prober:
    """Source of answers for the releases of one question, to be used as a context manager.

    It takes an answer from an earlier bisection if there is one. Otherwise it probes the release; the environment for
    that is made with the first probe and removed at the end.
    """

    def __init__(self, question: Question, folder: Path, say: Say) -> None:
        """Take the earlier answers from the folder, and keep new answers and logs there."""
        self.answers: dict[int, ReleaseAnswer] = {}
        """The answers so far, by the release's number."""
        self._question = question
        self._file = folder / "answers.jsonl"
        self._memory = ImportMemory(folder.parent / "imports.jsonl", question.stack)
        self._earlier = {answer.key: answer for answer in read_answers(self._file)}
        self._say = say
        self._resources = ExitStack()
        self._runner: ReleaseRunner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def ask(self, number: int) -> Answer:
        """Return the answer for the release of this number."""
        release = self._question.releases[number]
        found = self._earlier.get(self._question.key(release)) or self._recall(release)
        if found is None:
            found = self._ensure_runner().probe(release)
            append_answer(self._file, found)
        self.answers[number] = found
        self._say(f"{self._question.package} {release.version} ({release.date}): {found.answer}: {found.why}")
        return found.answer

    def _recall(self, release: Release) -> ReleaseAnswer | None:
        """Return the answer for a release that another bisection could not import."""
        question = self._question
        known = self._memory.find(f"{question.package}=={release.version}", question.modules)
        return _unimportable(question, release, known, "remembered") if known else None

    def _ensure_runner(self) -> ReleaseRunner:
        if self._runner is None:
            python = self._resources.enter_context(environments.copy(self._question.stack, self._say))
            self._runner = ReleaseRunner(self._question, python, new_log_folder(self._file), self._memory)
        return self._runner


class ReleaseRunner:
    """Runner of a question's cell with one release after another, all in one environment."""

    def __init__(self, question: Question, python: Path, runs: Path, memory: ImportMemory) -> None:
        """Run in the environment of the interpreter `python`, with the logs below `runs`."""
        self._question = question
        self._memory = memory
        self._python = python
        self._runs = runs
        self._swap = Swap(question.stack, question.package, python)

    def probe(self, release: Release) -> ReleaseAnswer:
        """Install a release, run the cell until enough runs agree, and return the answer."""
        version, key = str(release.version), self._question.key(release)
        try:
            self._swap.install(release.version)
            failure, note = self._import_with_older_dependencies(release)
        except UvError as error:
            return ReleaseAnswer(version, Answer.UNKNOWN, f"cannot be installed: {error}", {}, key)
        if failure:
            self._memory.keep(f"{self._question.package}=={version}", failure)
            return _unimportable(self._question, release, failure, note)
        cell = self._prepare_cell()
        if isinstance(cell, str):
            return ReleaseAnswer(version, Answer.UNKNOWN, cell, {}, key)
        answer, results = self._run_cell(cell, self._runs / version)
        versions = _relevant_versions(cell, self._question.package)
        why = f"{_describe_results(results)}{f' ({note})' if note else ''}"
        return ReleaseAnswer(version, answer, why, versions, key)

    def _import_with_older_dependencies(self, release: Release) -> tuple[ImportFailure | None, str]:
        """Import the script's modules; if that fails, once more with the dependencies of the release's own day.

        Returns:
            The failure that is left, and a note on what was installed; empty if that is the stack's own.
        """
        question = self._question
        first = try_imports(self._python, question.modules)
        if first is None or is_documented(first, question.spec.variant.signature):
            return None, ""
        note = f"with the dependencies of {release.date}"
        try:
            self._swap.install(release.version, as_of=release.date)
        except UvError:
            return first, "the dependencies of its day cannot be resolved"
        again = try_imports(self._python, question.modules)
        left = again if again and not is_documented(again, question.spec.variant.signature) else None
        return left, note

    def _prepare_cell(self) -> Cell | str:
        """Return the cell in the environment as it is, or the reason why there is none."""
        spec = self._question.spec
        try:
            environment = probe(self._python, self._question.stack.name, sim=spec.device is Device.SIM)
        except ProbeError as error:
            return str(error)
        (item,) = plan([spec], lambda _: [environment])
        return f"unavailable: {item.reason}" if isinstance(item, Unavailable) else item

    def _run_cell(self, cell: Cell, folder: Path) -> tuple[Answer, list[Result]]:
        results: list[Result] = []
        with Servers(folder / "servers") as servers:
            warm = servers if is_warm(cell) else None

            def run() -> Answer:
                results.append(run_cell(cell, folder / str(len(results) + 1), servers=warm))
                return _answer(results[-1])

            return confirm(run, NEEDED_RUNS, MAX_RUNS), results


def _unimportable(question: Question, release: Release, failure: ImportFailure, note: str) -> ReleaseAnswer:
    """Return the answer for a release that a script cannot import; without versions, since no cell was run."""
    why = f"import {failure.module} fails: {failure.why}{f' ({note})' if note else ''}"
    return ReleaseAnswer(str(release.version), Answer.UNKNOWN, why, {}, question.key(release))


def _answer(result: Result) -> Answer:
    """Return the answer of one run; a failure other than the documented one gives none."""
    if result.verdict.shows_failure:
        return Answer.YES
    return Answer.NO if result.verdict.ran_clean else Answer.UNKNOWN


def _describe_results(results: Sequence[Result]) -> str:
    """Return what the runs showed, with equal results counted: `2 x RuntimeError: ...`."""
    texts = [
        result.signature or "ran to its end"
        if _answer(result) is not Answer.UNKNOWN
        else f"{result.verdict}: {result.reason}"
        for result in results
    ]
    return "; ".join(f"{texts.count(text)} x {text}" for text in dict.fromkeys(texts))


def _relevant_versions(cell: Cell, package: str) -> dict[str, str]:
    names = {package, "torch", *cell.repro.named_packages}
    return {name: cell.environment.versions[name] for name in sorted(names) if name in cell.environment.versions}
