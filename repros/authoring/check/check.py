"""The steps of `repros check`: rules, runs, log, range, and those that the project configures."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from repros.authoring.check.golden import Golden, capture, golden_folder, has_golden_log
from repros.authoring.check.project_steps import ProjectStep, When, read_steps
from repros.authoring.check.rules import RULES, CheckedScript, find_unnamed_alternatives
from repros.authoring.new.template import remove_comments
from repros.diagnose.match import Confidence, match_log
from repros.diagnose.match.log import decode_lines
from repros.engine import environments, evidence
from repros.engine.evidence import Measurement
from repros.engine.matrix.check import find_contradictions
from repros.engine.matrix.measure import measure
from repros.engine.matrix.worklist import build_worklist
from repros.engine.plan import Selection, select
from repros.engine.run_options import Observer, RunOptions
from repros.engine.stacks import stack
from repros.model import CellResult, Repro, Stack, Verdict
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.scripts.bisect.bisection import Bisection, run_bisection
from repros.scripts.bisect.question import ask, choose_cell, claimed_packages
from repros.scripts.bisect.record import keep, kept_record

RESULTS = Path(".repros/check.jsonl")
"""Results of all checks, below the working directory."""


class StepResult(NamedTuple):
    """The result of one step of a check."""

    to_do: Sequence[str]
    """One sentence per open task."""
    fine: str = ""
    """The line to show if nothing is left to do."""
    stops: bool = False
    """Whether to skip all later steps."""
    optional: bool = False
    """Whether a script with these open tasks counts as done for the steps at :attr:`When.DONE`."""


class CheckObserver(Protocol):
    """Receiver of the progress of a check, which decides what the author is asked."""

    def begun(self, title: str) -> None:
        """Receive the title of the step that begins."""

    def report_progress(self, line: str) -> None:
        """Receive a line of progress within a step."""

    def ended(self, result: StepResult) -> None:
        """Receive the result of the step."""

    def cells(self, results: Path) -> AbstractContextManager[Observer]:
        """Return the receiver of the cells' progress while they run; the results go to the file."""

    def finished(self, result: CellResult) -> None:
        """Receive the result of a cell."""

    def failing(self, results: Sequence[CellResult]) -> None:
        """Receive the results of the failing variant, to compare with the signature in the header."""

    def wants_bisection(self, package: str) -> bool:
        """Return whether to bisect the ends of a package's range now, which takes minutes."""

    def bisected(self, bisection: Bisection) -> None:
        """Receive a bisection."""


@dataclass
class ScriptCheck:
    """A check of scripts: the catalogue that they are in, and the stacks to run them on."""

    catalogue: Catalogue
    repros: Sequence[Repro]
    stacks: Sequence[Stack]
    observer: CheckObserver
    skipped: Sequence[str] = ()
    """Titles of the project's steps to leave out."""
    results: list[CellResult] = field(default_factory=list)
    """Results of the cells that this check has run."""

    def run(self, *, rules_only: bool = False) -> list[str]:
        """Run all steps, or only those of the rules, and return what is left to do.

        A step may stop the check: a script that breaks a rule is not measured, and measurements next to a cell that
        disagrees would have to be repeated.

        Raises:
            ReprosError: a wrong value in the table of a project's steps, or no step with a title to leave out.
        """
        configured = self._configured_steps()
        names = ", ".join(stack.name for stack in self.stacks) or "no stack"
        rules: list[tuple[str, Step]] = [("Rules", _check_rules), *_steps_at(When.RULES, configured)]
        runs: list[tuple[str, Step]] = [
            (f"Runs on {names}", _measure),
            ("Log of a run by hand", lambda check: _for_each_repro(check, _capture_log)),
            ("Affected range", _check_range),
            ("Ends of the range", lambda check: _for_each_repro(check, _bisect)._replace(optional=True)),
            *_steps_at(When.RUNS, configured),
        ]
        to_do: list[str] = []
        is_done = True
        for title, step in rules if rules_only else rules + runs:
            result = self._run_step(title, step)
            to_do += result.to_do
            is_done &= not result.to_do or result.optional
            if result.stops:
                return to_do
        for title, step in [] if rules_only else _steps_at(When.DONE, configured):
            to_do += self._run_step(title, step if is_done else _postpone).to_do
        return to_do

    def _configured_steps(self) -> list[ProjectStep]:
        """Return the project's steps without those to leave out.

        Raises:
            ReprosError: a wrong value in the table, or no step with a title.
        """
        configured = read_steps(self.repros)
        titles = [step.title for step in configured]
        for title in self.skipped:
            if title not in titles:
                raise ReprosError(
                    f"--skip {title}: expected the title of a step: {', '.join(titles) or 'there is none'}."
                )
        return [step for step in configured if step.title not in self.skipped]

    def _run_step(self, title: str, step: Step) -> StepResult:
        self.observer.begun(title)
        result = step(self)
        self.observer.ended(result)
        return result

    def has_run(self, repro: Repro) -> bool:
        """Return whether the check has run cells of a repro: its evidence was not fresh."""
        return any(result.cell.repro.id == repro.id for result in self.results)

    def prefixed(self, repro: Repro, sentence: str) -> str:
        """Return a sentence about a repro, prefixed with its id if several are checked."""
        return f"{repro.id}: {sentence}" if len(self.repros) > 1 else sentence


Step = Callable[[ScriptCheck], StepResult]


def _steps_at(when: When, configured: Sequence[ProjectStep]) -> list[tuple[str, Step]]:
    """Return the configured steps of one point of the check, with their titles."""
    return [(step.title, partial(_run_configured, step=step)) for step in configured if step.when is when]


def _postpone(_check: ScriptCheck) -> StepResult:
    return StepResult([], "not run: it would fail while something above is left")


def _run_configured(check: ScriptCheck, step: ProjectStep) -> StepResult:
    if step.when is When.DONE:
        check.observer.report_progress(
            f"running {shlex.join(step.command)}; --skip {shlex.quote(step.title)} leaves it out"
        )
    ran = step.run([repro.id for repro in step.repros if check.has_run(repro)])
    if ran.to_do and ran.output:
        check.observer.report_progress(ran.output)
    return StepResult(ran.to_do, ran.fine or "nothing to do", stops=bool(ran.to_do) and step.when is When.RULES)


def _for_each_repro(check: ScriptCheck, step: Callable[[ScriptCheck, Repro], StepResult]) -> StepResult:
    """Run a step for each repro in turn."""
    results = [(repro, step(check, repro)) for repro in check.repros]
    to_do = [check.prefixed(repro, sentence) for repro, result in results for sentence in result.to_do]
    return StepResult(to_do, "; ".join(dict.fromkeys(result.fine for _, result in results)))


def _check_rules(check: ScriptCheck) -> StepResult:
    to_do = []
    for repro in check.repros:
        if remove_comments(repro.path):
            check.observer.report_progress(
                check.prefixed(repro, "the template's comments were removed from the header")
            )
        if repro.origin.folder is None and repro.silent and not repro.finds and "Watch" not in repro.sections:
            unless = "unless `repros watch` finds nothing: then a paragraph 'Watch:' of the docstring explains why"
            check.observer.report_progress(
                check.prefixed(repro, f"a silent failure names its check in finds, {unless}")
            )
        script = CheckedScript(repro, check.catalogue.locations)
        sentences = [sentence for rule in RULES for sentence in rule(script)]
        sentences += find_unnamed_alternatives(repro, check.catalogue)
        to_do += [check.prefixed(repro, sentence) for sentence in sentences]
    return StepResult(to_do, f"all {len(RULES) + 1} hold", stops=bool(to_do))


def _measure(check: ScriptCheck) -> StepResult:
    """Run every variant, first on the reference stacks: a new failure that is absent there runs nowhere else."""
    homes = {repro.home for repro in check.repros}
    first = [stack for stack in check.stacks if stack.name in homes]
    others = [stack for stack in check.stacks if stack.name not in homes]
    units = _measure_on(check, first)
    if not any(result.verdict.disagrees for result in check.results):
        units += _measure_on(check, others)
    judged = [result for result in check.results if result.observation and result.verdict is not Verdict.INFRA]
    for repro in check.repros:
        failing = [result for result in judged if result.cell.repro is repro and result.cell.variant.name == "failing"]
        check.observer.failing(failing)
    number = len(check.results)
    fine = f"{number} cells agree" if number else f"the evidence of all {units} units is fresh"
    stops = any(result.verdict.disagrees for result in check.results)
    return StepResult([*problems_of_runs(check.repros, check.stacks, check.results)], fine, stops)


def _measure_on(check: ScriptCheck, stacks: Sequence[Stack]) -> int:
    """Run every variant on stacks, write the evidence of cells that agree, and return the number of units."""
    by_name = {stack.name: stack for stack in stacks}
    by_id = {repro.id: repro for repro in check.repros}
    known = evidence.read(locations=check.catalogue.locations)
    worklist = build_worklist(select(Catalogue(tuple(check.repros)), Selection()), stacks, known)

    def folder(measurement: Measurement) -> Path:
        return evidence.folder_for(by_id[measurement.unit.repro], by_name[measurement.unit.stack])

    def store(measurement: Measurement) -> None:
        # A disagreement must be fixed first; as evidence it would count as a fact about these versions.
        if not any(variant.verdict.disagrees for variant in measurement.variants.values()):
            evidence.write([measurement], folder(measurement))

    for outdated in worklist.obsolete:
        evidence.remove(outdated.unit, folder(outdated))
    with check.observer.cells(RESULTS) as cells:
        for result in measure(worklist, RESULTS, cells, store, options=RunOptions(keep_environments=True)):
            check.observer.finished(result)
            check.results.append(result)
    return len(worklist.entries)


def problems_of_runs(repros: Sequence[Repro], stacks: Sequence[Stack], results: Sequence[CellResult]) -> Iterator[str]:
    """Yield a sentence for each cell that disagrees, and for each reference stack without a run."""
    for repro in repros:
        if repro.home not in [stack.name for stack in stacks]:
            yield f"run it on its reference stack: repros check {repro.id} --stack {repro.home}"
    for result in results:
        if result.verdict is Verdict.INFRA:
            yield f"rerun {result.cell.label}, which could not be judged: {result.reason}"
        elif result.verdict is Verdict.GONE:
            yield f"fix {result.cell.label}: it does not fail; its evidence is not written"
        elif result.verdict.disagrees:
            yield f"fix {result.cell.label}: it is {result.verdict}; its evidence is not written"


def _capture_log(check: ScriptCheck, repro: Repro) -> StepResult:
    """Capture the log of a run by hand, unless it exists and no cell has run since."""
    folder = golden_folder(repro)
    if folder is None:
        return StepResult([], "not captured: golden logs need a checkout")
    if not has_golden_log(repro):
        return StepResult([], "not captured: this failure leaves no message")
    golden = Golden(repro, repro.home, folder)
    if check.has_run(repro) or not golden.log.is_file():
        if repro.home not in [stack.name for stack in check.stacks if environments.ready(stack)]:
            return StepResult([f"capture the log on its reference stack: repros check {repro.id} --stack {repro.home}"])
        home = stack(repro.home, check.catalogue.locations)
        capture(golden, environments.ensure(home, check.observer.report_progress))
    return _find_failure(check, golden)


def _find_failure(check: ScriptCheck, golden: Golden) -> StepResult:
    """Check that `repros match` finds the failure in its log, and no other."""
    repro = golden.repro
    found = match_log(decode_lines(golden.log.read_bytes()), check.catalogue).candidates
    certain = [candidate.repro.id for candidate in found] == [repro.id] and found[0].confidence is Confidence.CERTAIN
    ids = ", ".join(f"{candidate.repro.id} ({candidate.confidence})" for candidate in found) or "no failure"
    problem = f"{golden.log}: 'repros match' finds {ids}; expected only {repro.id}, certain: fix match and frames"
    return StepResult([] if certain else [problem], f"{golden.log.name} matches {repro.id}")


def _check_range(check: ScriptCheck) -> StepResult:
    known = evidence.read(locations=check.catalogue.locations)
    contradictions = find_contradictions(Catalogue(tuple(check.repros)), known)
    return StepResult([str(contradiction) for contradiction in contradictions], "agrees with the evidence")


def _bisect(check: ScriptCheck, repro: Repro) -> StepResult:
    """Bisect every package whose range has an end, unless a result is recorded."""
    packages = claimed_packages(repro)
    for package in [package for package in packages if kept_record(repro, package) is None]:
        if not check.observer.wants_bisection(package):
            continue
        question = ask(choose_cell(check.catalogue, repro), package, places=check.catalogue.locations)
        bisection = run_bisection(question, question.folder, check.observer.report_progress)
        if bisection.boundaries.begins is not None:
            keep(bisection)
        check.observer.bisected(bisection)
    words = " ".join(repro.origin.words)
    left = [package for package in packages if kept_record(repro, package) is None]
    commands = {name: f"repros bisect {repro.id} --package {name} --keep {words}".rstrip() for name in left}
    fine = f"bisected: {', '.join(packages)}" if packages else "the range has no end"
    return StepResult([f"measure both ends of {name}: {command}" for name, command in commands.items()], fine)
