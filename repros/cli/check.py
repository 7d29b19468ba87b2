"""`repros check`: everything that a new script needs before a pull request, on the stacks that are ready."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import click

from repros import environments, evidence
from repros.authoring.golden import Golden, capture, golden_folder, has_golden_log
from repros.authoring.rules import RULES, Script, find_unnamed_rivals
from repros.authoring.script_tests import run_tests
from repros.authoring.template import remove_comments
from repros.cli.shared.bisecting import choose_cell, claimed_packages, keep_record, kept_record
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.live import LiveReporter
from repros.cli.shared.options import catalogue_option, example
from repros.cli.shared.output import Page, console, show_text
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.docs.readme import write_pages
from repros.engine.catalogue import load
from repros.engine.plan import Selection, select
from repros.evidence import Measurement
from repros.match import Confidence, match_log
from repros.match.log import decode_lines
from repros.matrix.measure import measure
from repros.matrix.ranges import find_contradictions
from repros.matrix.worklist import build_worklist
from repros.model import Outcome, Repro, Result, Stack, Verdict
from repros.model.catalogue import Catalogue
from repros.settings import CATALOGUE, Places
from repros.stacks import load_stacks, stack
from repros.text.suggest import suggest_signature

RESULTS = Path(".repros/check.jsonl")
"""Results of all checks, below the working directory."""


@dataclass
class _Check:
    """One check: where to show what it does, and what is left to do."""

    out: Page
    catalogue: Catalogue
    repro: Repro
    to_do: list[str] = field(default_factory=list)
    disagrees: bool = False
    """Whether a cell that was run disagrees: then its log is not the documented failure's."""

    def heading(self, title: str) -> None:
        show_text(self.out, f"\n{title}", "bold")

    def report(self, sentences: Sequence[str], fine: str) -> None:
        """Show what is left to do, or that all is well."""
        self.to_do += sentences
        for sentence in sentences:
            show_text(self.out, f"  to do: {sentence}", "red")
        if not sentences:
            show_text(self.out, f"  {fine}", "green")


@click.command(
    epilog=example("repros check resume_loses_momentum", "repros check RPR-0050 --stack current --bisect"),
)
@click.argument("id_", metavar="ID")
@click.option(
    "--stack",
    "stacks",
    multiple=True,
    metavar="NAME",
    help="Measure on this stack, made if it is missing; repeatable. Default: all stacks that are ready.",
)
@click.option(
    "--bisect/--no-bisect",
    default=None,
    help="Find the ends of the affected range by bisection, minutes each; asked on a terminal if not given.",
)
@catalogue_option
def check(id_: str, stacks: tuple[str, ...], places: Places, *, bisect: bool | None) -> int:
    """Do everything that a new script needs, and say what is left to do.

    The rules of the catalogue are checked; every variant is run on the stacks that are ready, and evidence is kept of
    what agrees; the signature of the failing run is shown, to be copied; its log is captured, and must lead to this
    failure; the affected range is compared with the evidence; the ends of the range are bisected on request; the
    tables of docs/failures.md and the README are written; and the tests of this script are run.

    Exit code: 0 when nothing is left to do, 1 when something is, 2 when the request is invalid.
    """
    catalogue = load_catalogue(places)
    checked = _Check(console(), catalogue, catalogue.find(id_))
    chosen = [stack(name, places) for name in stacks] or [*filter(environments.ready, load_stacks(places).values())]
    try:
        with interrupt_on_signals():
            _check_rules(checked)
            _measure(checked, chosen)
            _capture_log(checked, chosen)
            _check_range(checked)
            _bisect(checked, wanted=bisect)
            _write_tables(checked)
            _run_tests(checked)
    except KeyboardInterrupt as interruption:
        return interruption_exit_code(interruption)
    return _conclude(checked)


def _check_rules(checked: _Check) -> None:
    checked.heading("Rules")
    if remove_comments(checked.repro.path):
        show_text(checked.out, "  the template's comments were removed from the header", "dim")
    script = Script(checked.repro, checked.catalogue.places)
    sentences = [sentence for rule in RULES for sentence in rule(script)]
    sentences += find_unnamed_rivals(checked.repro, checked.catalogue)
    checked.report(sentences, f"all {len(RULES) + 1} hold")


def _measure(checked: _Check, stacks: Sequence[Stack]) -> None:
    """Run every variant on every stack, keep the evidence that agrees, and show the signature to copy."""
    repro = checked.repro
    checked.heading(f"Runs on {', '.join(stack.name for stack in stacks) or 'no stack'}")
    by_name = {stack.name: stack for stack in stacks}
    worklist = build_worklist(
        select(Catalogue((repro,)), Selection()), stacks, evidence.read(places=checked.catalogue.places)
    )
    results: list[Result] = []

    def store(measurement: Measurement) -> None:
        # Whatever disagrees is to be fixed first; kept, it would pass for a fact about these versions.
        if not any(variant.verdict.disagrees for variant in measurement.variants.values()):
            evidence.write([measurement], evidence.folder_for(repro, by_name[measurement.unit.stack]))

    for outdated in worklist.obsolete:
        evidence.remove(outdated.unit, evidence.folder_for(repro, by_name[outdated.unit.stack]))
    observer = LiveReporter(checked.out, RESULTS, append=True, verbose=False)
    with observer:
        for result in measure(worklist, RESULTS, observer, store, keep_environments=True):
            observer.finished(result)
            results.append(result)
    observer.close(interrupted=False, summary=False)
    judged = [result for result in results if result.observation and result.verdict is not Verdict.INFRA]
    failed = [result for result in judged if result.cell.variant.name == "failing"]
    for line in suggest_signature(failed):
        show_text(checked.out, f"  {line}")
    checked.disagrees = any(result.verdict.disagrees for result in results)
    checked.report(list(_run_problems(repro, stacks, results)), _measured_text(worklist.entries, results))


def _measured_text(entries: Sequence[object], results: Sequence[Result]) -> str:
    return f"{len(results)} cells agree" if results else f"the evidence of all {len(entries)} units is fresh"


def _run_problems(repro: Repro, stacks: Sequence[Stack], results: Sequence[Result]) -> Iterator[str]:
    names = [stack.name for stack in stacks]
    if repro.home not in names:
        yield f"run it on its home: repros check {repro.id} --stack {repro.home}"
    for result in results:
        if result.verdict is Verdict.INFRA:
            yield f"run {result.cell.label} again, which could not be judged: {result.reason}"
        elif result.verdict.disagrees:
            yield f"fix {result.cell.label}: it is {result.verdict}; its evidence is not kept"


def _capture_log(checked: _Check, stacks: Sequence[Stack]) -> None:
    """Capture the log of a run by hand, and find the failure in it."""
    repro = checked.repro
    checked.heading("Log of a run by hand")
    folder = golden_folder(repro)
    names = [stack.name for stack in stacks if environments.ready(stack)]
    if checked.disagrees:
        show_text(checked.out, "  not captured: first fix the cells that disagree", "red")
        return
    if not has_golden_log(repro) or folder is None:
        why = "this failure leaves no message" if folder else "there is no checkout to keep it in"
        checked.report([], f"not captured: {why}")
        return
    if repro.home not in names:
        checked.report([f"capture the log on its home: repros check {repro.id} --stack {repro.home}"], "")
        return
    golden = Golden(repro, repro.home, folder)
    text = capture(
        golden,
        environments.ensure(
            stack(repro.home, checked.catalogue.places), lambda line: show_text(checked.out, line, "dim")
        ),
    )
    found = match_log(decode_lines(text.encode()), checked.catalogue).candidates
    certain = [candidate.repro.id for candidate in found] == [repro.id] and found[0].confidence is Confidence.CERTAIN
    ids = ", ".join(f"{candidate.repro.id} ({candidate.confidence})" for candidate in found) or "no failure"
    problem = f"{golden.log}: 'repros match' finds {ids}; expected {repro.id} alone and certain: fix match and frames"
    checked.report([] if certain else [problem], f"{golden.log.name} leads to {repro.id}")


def _check_range(checked: _Check) -> None:
    checked.heading("Affected range")
    contradictions = find_contradictions(Catalogue((checked.repro,)), evidence.read(places=checked.catalogue.places))
    checked.report([str(contradiction) for contradiction in contradictions], "agrees with the evidence")


def _bisect(checked: _Check, *, wanted: bool | None) -> None:
    """Bisect every package whose range has an end, unless that was done before."""
    repro, packages = checked.repro, claimed_packages(checked.repro)
    checked.heading("Ends of the range")
    missing = [package for package in packages if kept_record(repro, package) is None]
    for package in missing:
        ask = sys.stdin.isatty() and wanted is None
        if wanted or (ask and click.confirm(f"  bisect {package} now? It takes some minutes", default=True)):
            outcome = keep_record(choose_cell(checked.catalogue, repro), package, checked.out, checked.catalogue.places)
            show_text(checked.out, f"  {outcome}")
    words = " ".join(repro.origin.words)
    left = [package for package in packages if kept_record(repro, package) is None]
    commands = [f"repros bisect {repro.id} --package {package} --keep {words}".rstrip() for package in left]
    fine = f"bisected: {', '.join(packages)}" if packages else "no end is claimed"
    checked.report(
        [f"measure both ends of {name}: {command}" for name, command in zip(left, commands, strict=True)], fine
    )


def _write_tables(checked: _Check) -> None:
    """Write the README's tables, in a checkout and for a script of the package."""
    root = CATALOGUE.parents[1]
    checked.heading("Documentation")
    if checked.repro.origin.folder is not None or not (root / "docs/failures.md").is_file():
        checked.report([], "none to write: the script is not one of a checkout")
        return
    changed = write_pages(root, load())
    checked.report([], f"written: {', '.join(changed)}" if changed else "the tables are up to date")


def _run_tests(checked: _Check) -> None:
    """Run the checkout's tests that concern this script."""
    repro, root = checked.repro, CATALOGUE.parents[1]
    checked.heading("Tests of this script")
    if repro.origin.folder is not None or not (root / "tests").is_dir():
        command = f"python -m pytest {repro.path.parent} --repro {repro.id}"
        checked.report([], f"none here; as tests of your own: {command}")
        return
    if find_spec("pytest") is None:
        checked.report(["install pytest to run the tests, or run nox -s unit"], "")
        return
    ran = run_tests(repro, root)
    if not ran.passed:
        show_text(checked.out, ran.output)
    checked.report([] if ran.passed else [f"fix the tests: {ran.last_line}"], ran.last_line)


def _conclude(checked: _Check) -> int:
    out, repro = checked.out, checked.repro
    if checked.to_do:
        show_text(out, f"\n{repro.id}: {len(checked.to_do)} to do", "bold red")
        return DISAGREES
    fails = sum(variant.outcome is Outcome.FAILS for variant in repro.variants)
    show_text(out, f"\n{repro.id}: nothing is left to do ({len(repro.variants)} variants, {fails} fail)", "bold green")
    return AGREES
