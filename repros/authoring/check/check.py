"""Everything that new scripts need before a pull request; `repros check` shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from repros.authoring.check.golden import Golden, capture, golden_folder, has_golden_log
from repros.authoring.check.rules import RULES, Script, find_unnamed_rivals
from repros.authoring.new.template import remove_comments
from repros.diagnose.match import Confidence, match_log
from repros.diagnose.match.log import decode_lines
from repros.engine import environments, evidence
from repros.engine.evidence import Measurement
from repros.engine.matrix.check import find_contradictions
from repros.engine.matrix.measure import measure
from repros.engine.matrix.worklist import build_worklist
from repros.engine.pipeline import Observer, RunOptions
from repros.engine.plan import Selection, select
from repros.engine.stacks import stack
from repros.model import CellResult, Repro, Stack, Verdict
from repros.model.catalogue import Catalogue
from repros.scripts.bisect.ask import ask, choose_cell, claimed_packages
from repros.scripts.bisect.bisection import Bisection, run_bisection
from repros.scripts.bisect.record import keep, kept_record
from tools import checkout

RESULTS = Path(".repros/check.jsonl")
"""Results of all checks, below the working directory."""


class Step(NamedTuple):
    """What one step of a check found."""

    to_do: Sequence[str]
    """A sentence for each thing that is left to do."""
    fine: str = ""
    """What to say when nothing is."""
    stops: bool = False
    """Whether the steps that follow would be wasted."""
    fails_tests: bool = True
    """Whether tests of the catalogue fail while something of this is left."""


class CheckObserver(Protocol):
    """Receiver of the progress of a check, which decides what the author is asked."""

    def begun(self, title: str) -> None:
        """Receive the title of the step that begins."""

    def report_progress(self, line: str) -> None:
        """Receive a line of progress within a step."""

    def ended(self, step: Step) -> None:
        """Receive what the step found."""

    def cells(self, results: Path) -> AbstractContextManager[Observer]:
        """Return the receiver of the cells' progress, for as long as they run; the results go to the file."""

    def finished(self, result: CellResult) -> None:
        """Receive the result of a cell."""

    def failing(self, results: Sequence[CellResult]) -> None:
        """Receive the results of the failing variant, whose signature the header states."""

    def wants_bisection(self, package: str) -> bool:
        """Return whether to look for the ends of a package's range now, which takes minutes."""

    def bisected(self, bisection: Bisection) -> None:
        """Receive a bisection."""


@dataclass
class Check:
    """Scripts to check, the catalogue that they are in, and the stacks to run them on."""

    catalogue: Catalogue
    repros: Sequence[Repro]
    stacks: Sequence[Stack]
    observer: CheckObserver
    results: list[CellResult] = field(default_factory=list)
    """Of the cells that the check has run."""
    fails_tests: bool = False
    """Whether something is left that tests of the catalogue ask for, too: these need not run, which takes a minute."""

    def run(self, *, rules_only: bool = False) -> list[str]:
        """Do all steps, or the first alone, and return what is left to do.

        What a step finds may stop the check: a script that breaks a rule is not measured, and what is measured while a
        cell disagrees would be measured again.
        """
        names = ", ".join(stack.name for stack in self.stacks) or "no stack"
        steps: dict[str, Callable[[Check], Step]] = {
            "Rules": _check_rules,
            f"Runs on {names}": _measure,
            "Log of a run by hand": lambda check: _of_each(check, _capture_log),
            "Runs under the watch": _watch,
            "Affected range": _check_range,
            "Ends of the range": lambda check: _of_each(check, _bisect)._replace(fails_tests=False),
            "Documentation": lambda check: Step(*checkout.write_documents(check.repros)),
            "Tests of the catalogue": _run_tests,
        }
        to_do: list[str] = []
        for title, do in [*steps.items()][: 1 if rules_only else None]:
            self.observer.begun(title)
            step = do(self)
            self.observer.ended(step)
            to_do += step.to_do
            self.fails_tests |= bool(step.to_do) and step.fails_tests
            if step.stops:
                break
        return to_do

    def has_run(self, repro: Repro) -> bool:
        """Return whether the check has run cells of a repro: its evidence was not fresh."""
        return any(result.cell.repro.id == repro.id for result in self.results)

    def named(self, repro: Repro, sentence: str) -> str:
        """Return a sentence on a repro, with its id in front where several are checked."""
        return f"{repro.id}: {sentence}" if len(self.repros) > 1 else sentence


def _of_each(check: Check, do: Callable[[Check, Repro], Step]) -> Step:
    """Do a step for each repro in turn."""
    steps = [(repro, do(check, repro)) for repro in check.repros]
    to_do = [check.named(repro, sentence) for repro, step in steps for sentence in step.to_do]
    return Step(to_do, "; ".join(dict.fromkeys(step.fine for _, step in steps)))


def _check_rules(check: Check) -> Step:
    to_do = []
    for repro in check.repros:
        if remove_comments(repro.path):
            check.observer.report_progress(check.named(repro, "the template's comments were removed from the header"))
        script = Script(repro, check.catalogue.locations)
        sentences = [sentence for rule in RULES for sentence in rule(script)]
        sentences += [*find_unnamed_rivals(repro, check.catalogue), *checkout.problems_of_style(repro)]
        to_do += [check.named(repro, sentence) for sentence in sentences]
    return Step(to_do, f"all {len(RULES) + 2} hold", stops=bool(to_do))


def _measure(check: Check) -> Step:
    """Run every variant of all repros on every stack, and keep the evidence that agrees."""
    by_name = {stack.name: stack for stack in check.stacks}
    by_id = {repro.id: repro for repro in check.repros}
    known = evidence.read(locations=check.catalogue.locations)
    worklist = build_worklist(select(Catalogue(tuple(check.repros)), Selection()), check.stacks, known)

    def folder(measurement: Measurement) -> Path:
        return evidence.folder_for(by_id[measurement.unit.repro], by_name[measurement.unit.stack])

    def store(measurement: Measurement) -> None:
        # Whatever disagrees is to be fixed first; kept, it would pass for a fact about these versions.
        if not any(variant.verdict.disagrees for variant in measurement.variants.values()):
            evidence.write([measurement], folder(measurement))

    for outdated in worklist.obsolete:
        evidence.remove(outdated.unit, folder(outdated))
    with check.observer.cells(RESULTS) as cells:
        for result in measure(worklist, RESULTS, cells, store, options=RunOptions(keep_environments=True)):
            check.observer.finished(result)
            check.results.append(result)
    judged = [result for result in check.results if result.observation and result.verdict is not Verdict.INFRA]
    for repro in check.repros:
        failing = [result for result in judged if result.cell.repro is repro and result.cell.variant.name == "failing"]
        check.observer.failing(failing)
    number = len(check.results)
    fine = f"{number} cells agree" if number else f"the evidence of all {len(worklist.entries)} units is fresh"
    stops = any(result.verdict.disagrees for result in check.results)
    return Step([*problems_of_runs(check.repros, check.stacks, check.results)], fine, stops)


def problems_of_runs(repros: Sequence[Repro], stacks: Sequence[Stack], results: Sequence[CellResult]) -> Iterator[str]:
    """Yield a sentence for each cell that does not agree, and for a home stack on which nothing was run."""
    for repro in repros:
        if repro.home not in [stack.name for stack in stacks]:
            yield f"run it on its home: repros check {repro.id} --stack {repro.home}"
    for result in results:
        if result.verdict is Verdict.INFRA:
            yield f"run {result.cell.label} again, which could not be judged: {result.reason}"
        elif result.verdict.disagrees:
            yield f"fix {result.cell.label}: it is {result.verdict}; its evidence is not kept"


def _capture_log(check: Check, repro: Repro) -> Step:
    """Capture the log of a run by hand, unless it is there and no cell has run since."""
    folder = golden_folder(repro)
    if folder is None:
        return Step([], "not captured: there is no checkout to keep it in")
    if not has_golden_log(repro):
        return Step([], "not captured: this failure leaves no message")
    golden = Golden(repro, repro.home, folder)
    if check.has_run(repro) or not golden.log.is_file():
        if repro.home not in [stack.name for stack in check.stacks if environments.ready(stack)]:
            return Step([f"capture the log on its home: repros check {repro.id} --stack {repro.home}"])
        home = stack(repro.home, check.catalogue.locations)
        capture(golden, environments.ensure(home, check.observer.report_progress))
    return _find_failure(check, golden)


def _find_failure(check: Check, golden: Golden) -> Step:
    """Find the failure in its log."""
    repro = golden.repro
    found = match_log(decode_lines(golden.log.read_bytes()), check.catalogue).candidates
    certain = [candidate.repro.id for candidate in found] == [repro.id] and found[0].confidence is Confidence.CERTAIN
    ids = ", ".join(f"{candidate.repro.id} ({candidate.confidence})" for candidate in found) or "no failure"
    problem = f"{golden.log}: 'repros match' finds {ids}; expected {repro.id} alone and certain: fix match and frames"
    return Step([] if certain else [problem], f"{golden.log.name} leads to {repro.id}")


def _watch(check: Check) -> Step:
    """Run the variants under the watch, on the stacks whose findings the documentation shows."""
    ready = [stack.name for stack in check.stacks if environments.ready(stack)]
    again = [repro for repro in check.repros if check.has_run(repro)]
    return Step(*checkout.watch_runs(check.repros, again, ready, check.observer.report_progress))


def _check_range(check: Check) -> Step:
    known = evidence.read(locations=check.catalogue.locations)
    contradictions = find_contradictions(Catalogue(tuple(check.repros)), known)
    return Step([str(contradiction) for contradiction in contradictions], "agrees with the evidence")


def _bisect(check: Check, repro: Repro) -> Step:
    """Bisect every package whose range has an end, unless that was done before."""
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
    fine = f"bisected: {', '.join(packages)}" if packages else "no end is claimed"
    return Step([f"measure both ends of {name}: {command}" for name, command in commands.items()], fine)


def _run_tests(check: Check) -> Step:
    if check.fails_tests and checkout.has_checkout(check.repros):
        return Step([], "not run: they fail while something above is left")
    ran = checkout.run_script_tests(check.repros)
    if ran.to_do and ran.output:
        check.observer.report_progress(ran.output)
    return Step(ran.to_do, ran.fine)
