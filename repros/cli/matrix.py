"""`repros matrix`: the catalogue over all stacks, measured where nothing is known, or checked against what is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from repros.cli.live import LiveReporter
from repros.cli.options import catalogue_option, example, load_catalogue, narrowing_options, read_results
from repros.cli.output import console, show_text
from repros.cli.run import AGREES, DISAGREES
from repros.cli.signals import exit_code, interrupting
from repros.engine.cells import JOBS
from repros.engine.plan import NothingToRunError, Selection, select
from repros.evidence import files
from repros.evidence.files import Evidence, Measurement
from repros.matrix import check
from repros.matrix import text as plan
from repros.matrix.measure import measure
from repros.matrix.worklist import Worklist, worklist
from repros.model import Category, Device, Verdict
from repros.stacks import load_stacks, stack
from repros.text import table
from repros.text.wording import count

RESULTS = Path(".repros/matrix.jsonl")
"""Results of all matrix runs, below the working directory."""


@click.command(
    short_help="Run the catalogue over all stacks; keep or check the evidence.",
    epilog=example("repros matrix --dry-run", "repros matrix --stack 2023-12 --check"),
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--stack", "stacks", multiple=True, metavar="NAME", help="Only this stack; repeatable.")
@narrowing_options
@click.option("--dry-run", is_flag=True, help="Show what would be run, and about how long it takes.")
@click.option(
    "--check", "checking", is_flag=True, help="Run, known or not, and fail where the evidence says otherwise."
)
@click.option(
    "--from",
    "recorded",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --check: look at these results of an earlier run rather than run anything.",
)
@click.option("--again", is_flag=True, help="Measure what is known already too.")
@click.option("--allow-empty", is_flag=True, help="Exit with 0 when the selection names no cell.")
@click.option("--keep", is_flag=True, help="Keep environments that are made for this.")
@click.option(
    "--evidence",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=files.EVIDENCE,
    metavar="FOLDER",
    help="Where the evidence lies; the package's own if not given.",
)
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RESULTS,
    show_default=True,
    metavar="FILE",
    help="JSON Lines file that results are added to; logs go to runs/ beside it.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=JOBS, show_default=True, metavar="N", help="Cells side by side."
)
@catalogue_option
def matrix(ids: tuple[str, ...], places: tuple[Path, ...], **options: Any) -> int:
    """Run the catalogue over all stacks.

    Only what has no evidence yet is run: evidence is out of date when the script, the stack's lock or the engine has
    changed. It is written stack by stack as it comes, so that an interrupted run goes on where it was. Environments
    that are not there are made one after another and dropped again.

    With --check nothing is written: all cells are run, and each that is not as its evidence says is named as news or
    as trouble. Exit code: 0 when all is as documented, or as the evidence says; 1 when it is not; 2 when the request
    cannot be met.
    """
    out = console()
    known = files.read(options["folder"])
    if options["recorded"]:
        if not options["checking"]:
            raise click.UsageError("--from needs --check: evidence is written from a run's own observations.")
        return _hold(out, read_results(options["recorded"]), known)
    selection = Selection(ids, (), options["strategies"], tuple(map(Device, options["devices"])))
    try:
        specs = select(load_catalogue(places), selection)
    except NothingToRunError as error:
        if not options["allow_empty"]:
            raise
        show_text(out, str(error))
        return AGREES
    todo = worklist(specs, [*map(stack, options["stacks"])] or [*load_stacks().values()], known)
    for line in plan.lines(todo, known, everything=options["again"] or options["checking"]):
        show_text(out, line, "dim")
    return AGREES if options["dry_run"] else _run(out, todo, known, options)


def _run(out: Console, todo: Worklist, known: Evidence, options: Mapping[str, Any]) -> int:
    """Measure what there is to measure, write or hold it; return the exit code."""
    checking = options["checking"]

    def keep(measured: Measurement) -> None:
        if not checking:
            files.write([measured], options["folder"])

    observer = LiveReporter(out, options["results"], append=True, verbose=False)
    how = {"everything": options["again"] or checking, "jobs": options["jobs"], "leave": options["keep"]}
    said = set[str]()
    unmade = False
    with observer:
        try:
            with interrupting():
                for result in measure(todo, options["results"], observer, keep, **how):
                    observer.finished(result)
                    unmade = unmade or result.cell.environment.broken is not None
                    if result.verdict is Verdict.UNAVAILABLE and result.reason not in said:
                        said.add(result.reason)
                        show_text(out, f"not run on {result.cell.environment.name}: {result.reason}", "red")
        except KeyboardInterrupt as interruption:
            observer.close(interrupted=True, summary=False)
            return exit_code(interruption)
    if not observer.lines:
        return AGREES
    show_text(out, table.closing(table.latest(observer.lines)))
    observer.close(interrupted=False, summary=False)
    disagrees = _hold(out, observer.lines, known) if checking else bool(table.disagreeing(observer.lines))
    return DISAGREES if disagrees or unmade or observer.lost else AGREES


def _hold(out: Console, lines: Sequence[Mapping[str, Any]], known: Evidence) -> int:
    """Say where results disagree with the evidence; return the exit code."""
    disagreements = check.against(lines, known)
    for one in disagreements:
        show_text(out, str(one), "yellow" if one.category is Category.NEWS else "red")
    how_many = f"{len(disagreements)} not" if disagreements else "all"
    show_text(out, f"{count(len(lines), 'cell')} looked at, {how_many} as their evidence says")
    return DISAGREES if disagreements else AGREES
