"""Everything that a new script needs before a pull request; `repros check` shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol

from repros import environments, evidence
from repros.authoring.golden import Golden, capture, golden_folder, has_golden_log
from repros.authoring.rules import RULES, Script, find_unnamed_rivals
from repros.authoring.script_tests import run_tests
from repros.authoring.template import remove_comments
from repros.bisect.ask import ask, choose_cell, claimed_packages
from repros.bisect.bisection import Bisection, run_bisection
from repros.bisect.record import keep, kept_record
from repros.docs.readme import write_pages
from repros.engine.catalogue import load
from repros.engine.pipeline import Observer
from repros.engine.plan import Selection, select
from repros.evidence import Measurement
from repros.match import Confidence, match_log
from repros.match.log import decode_lines
from repros.matrix.measure import measure
from repros.matrix.ranges import find_contradictions
from repros.matrix.worklist import build_worklist
from repros.model import Repro, Result, Stack, Verdict
from repros.model.catalogue import Catalogue
from repros.settings import CATALOGUE
from repros.stacks import stack

RESULTS = Path(".repros/check.jsonl")
"""Results of all checks, below the working directory."""


class Step(NamedTuple):
    """What one step of a check found."""

    to_do: Sequence[str]
    """A sentence for each thing that is left to do."""
    fine: str = ""
    """What to say when nothing is."""


class CheckObserver(Protocol):
    """Receiver of the progress of a check, which decides what the author is asked."""

    def begun(self, title: str) -> None:
        """Receive the title of the step that begins."""

    def say(self, line: str) -> None:
        """Receive a line of progress within a step."""

    def ended(self, step: Step) -> None:
        """Receive what the step found."""

    def cells(self, results: Path) -> AbstractContextManager[Observer]:
        """Return the receiver of the cells' progress, for as long as they run; the results go to the file."""

    def finished(self, result: Result) -> None:
        """Receive the result of a cell."""

    def failing(self, results: Sequence[Result]) -> None:
        """Receive the results of the failing variant, whose signature the header states."""

    def wants_bisection(self, package: str) -> bool:
        """Return whether to look for the ends of a package's range now, which takes minutes."""

    def bisected(self, bisection: Bisection) -> None:
        """Receive a bisection."""


@dataclass
class Check:
    """A script to check, the catalogue that it is in, and the stacks to run it on."""

    catalogue: Catalogue
    repro: Repro
    stacks: Sequence[Stack]
    observer: CheckObserver
    results: list[Result] = field(default_factory=list)
    """Of the cells that the check has run."""

    def run(self) -> list[str]:
        """Do all steps, and return what is left to do."""
        names = ", ".join(stack.name for stack in self.stacks) or "no stack"
        steps = {
            "Rules": _check_rules,
            f"Runs on {names}": _measure,
            "Log of a run by hand": _capture_log,
            "Affected range": _check_range,
            "Ends of the range": _bisect,
            "Documentation": _write_tables,
            "Tests of this script": _run_tests,
        }
        to_do: list[str] = []
        for title, do in steps.items():
            self.observer.begun(title)
            step = do(self)
            self.observer.ended(step)
            to_do += step.to_do
        return to_do


def _check_rules(check: Check) -> Step:
    if remove_comments(check.repro.path):
        check.observer.say("the template's comments were removed from the header")
    script = Script(check.repro, check.catalogue.places)
    sentences = [sentence for rule in RULES for sentence in rule(script)]
    return Step([*sentences, *find_unnamed_rivals(check.repro, check.catalogue)], f"all {len(RULES) + 1} hold")


def _measure(check: Check) -> Step:
    """Run every variant on every stack, and keep the evidence that agrees."""
    repro = check.repro
    by_name = {stack.name: stack for stack in check.stacks}
    known = evidence.read(places=check.catalogue.places)
    worklist = build_worklist(select(Catalogue((repro,)), Selection()), check.stacks, known)

    def store(measurement: Measurement) -> None:
        # Whatever disagrees is to be fixed first; kept, it would pass for a fact about these versions.
        if not any(variant.verdict.disagrees for variant in measurement.variants.values()):
            evidence.write([measurement], evidence.folder_for(repro, by_name[measurement.unit.stack]))

    for outdated in worklist.obsolete:
        evidence.remove(outdated.unit, evidence.folder_for(repro, by_name[outdated.unit.stack]))
    with check.observer.cells(RESULTS) as cells:
        for result in measure(worklist, RESULTS, cells, store, keep_environments=True):
            check.observer.finished(result)
            check.results.append(result)
    judged = [result for result in check.results if result.observation and result.verdict is not Verdict.INFRA]
    check.observer.failing([result for result in judged if result.cell.variant.name == "failing"])
    number = len(check.results)
    fine = f"{number} cells agree" if number else f"the evidence of all {len(worklist.entries)} units is fresh"
    return Step([*problems_of_runs(repro, check.stacks, check.results)], fine)


def problems_of_runs(repro: Repro, stacks: Sequence[Stack], results: Sequence[Result]) -> Iterator[str]:
    """Yield a sentence for each cell that does not agree, and for a home stack on which nothing was run."""
    if repro.home not in [stack.name for stack in stacks]:
        yield f"run it on its home: repros check {repro.id} --stack {repro.home}"
    for result in results:
        if result.verdict is Verdict.INFRA:
            yield f"run {result.cell.label} again, which could not be judged: {result.reason}"
        elif result.verdict.disagrees:
            yield f"fix {result.cell.label}: it is {result.verdict}; its evidence is not kept"


def _capture_log(check: Check) -> Step:
    """Capture the log of a run by hand, unless it would not be the documented failure's."""
    repro = check.repro
    folder = golden_folder(repro)
    if any(result.verdict.disagrees for result in check.results):
        return Step(["fix the cells that disagree, then check again: the log is of a run that agrees"])
    if folder is None:
        return Step([], "not captured: there is no checkout to keep it in")
    if not has_golden_log(repro):
        return Step([], "not captured: this failure leaves no message")
    if repro.home not in [stack.name for stack in check.stacks if environments.ready(stack)]:
        return Step([f"capture the log on its home: repros check {repro.id} --stack {repro.home}"])
    return _capture_golden(check, Golden(repro, repro.home, folder))


def _capture_golden(check: Check, golden: Golden) -> Step:
    """Capture the log, and find the failure in it."""
    repro = check.repro
    home = stack(repro.home, check.catalogue.places)
    text = capture(golden, environments.ensure(home, check.observer.say))
    found = match_log(decode_lines(text.encode()), check.catalogue).candidates
    certain = [candidate.repro.id for candidate in found] == [repro.id] and found[0].confidence is Confidence.CERTAIN
    ids = ", ".join(f"{candidate.repro.id} ({candidate.confidence})" for candidate in found) or "no failure"
    problem = f"{golden.log}: 'repros match' finds {ids}; expected {repro.id} alone and certain: fix match and frames"
    return Step([] if certain else [problem], f"{golden.log.name} leads to {repro.id}")


def _check_range(check: Check) -> Step:
    contradictions = find_contradictions(Catalogue((check.repro,)), evidence.read(places=check.catalogue.places))
    return Step([str(contradiction) for contradiction in contradictions], "agrees with the evidence")


def _bisect(check: Check) -> Step:
    """Bisect every package whose range has an end, unless that was done before."""
    repro, packages = check.repro, claimed_packages(check.repro)
    for package in [package for package in packages if kept_record(repro, package) is None]:
        if not check.observer.wants_bisection(package):
            continue
        question = ask(choose_cell(check.catalogue, repro), package, places=check.catalogue.places)
        bisection = run_bisection(question, question.folder, check.observer.say)
        if bisection.boundaries.begins is not None:
            keep(bisection)
        check.observer.bisected(bisection)
    words = " ".join(repro.origin.words)
    left = [package for package in packages if kept_record(repro, package) is None]
    commands = {name: f"repros bisect {repro.id} --package {name} --keep {words}".rstrip() for name in left}
    fine = f"bisected: {', '.join(packages)}" if packages else "no end is claimed"
    return Step([f"measure both ends of {name}: {command}" for name, command in commands.items()], fine)


def _write_tables(check: Check) -> Step:
    """Write the tables of the documentation, in a checkout and for a script of the package."""
    root = CATALOGUE.parents[1]
    if check.repro.origin.folder is not None or not (root / "docs/failures.md").is_file():
        return Step([], "none to write: the script is not one of a checkout")
    changed = write_pages(root, load())
    return Step([], f"written: {', '.join(changed)}" if changed else "the tables are up to date")


def _run_tests(check: Check) -> Step:
    """Run the checkout's tests that concern this script."""
    repro, root = check.repro, CATALOGUE.parents[1]
    if repro.origin.folder is not None or not (root / "tests").is_dir():
        return Step([], f"none here; as tests of your own: python -m pytest {repro.path.parent} --repro {repro.id}")
    if find_spec("pytest") is None:
        return Step(["install pytest to run the tests, or run nox -s unit"])
    ran = run_tests(repro, root)
    if not ran.passed:
        check.observer.say(ran.output)
    return Step([] if ran.passed else [f"fix the tests: {ran.last_line}"], ran.last_line)
