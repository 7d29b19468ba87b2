"""`repros matrix`: the catalogue over all stacks, measured where nothing is known, or checked against what is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from repros.cli.live import Live
from repros.cli.options import catalogue_option, example, load_shelf
from repros.cli.output import console, show_text
from repros.cli.run import AGREES, DISAGREES
from repros.cli.signals import exit_code, interrupting
from repros.journey import JOBS
from repros.matrix import check, evidence
from repros.matrix.agenda import agenda
from repros.matrix.campaign import measure
from repros.model import Device, Result, Tone
from repros.plan import NothingToRunError, Selection, select
from repros.report import agenda as plan
from repros.stacks import load_stacks, stack

RESULTS = Path(".repros/matrix.jsonl")
"""Results of all matrix runs, below the working directory."""


@click.command(
    short_help="Run the catalogue over all stacks; keep or check the evidence.",
    epilog=example("repros matrix --dry-run", "repros matrix --stack 2023-12 --check"),
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--stack", "stacks", multiple=True, metavar="NAME", help="Only this stack; repeatable.")
@click.option("--strategy", "strategies", multiple=True, metavar="NAME", help="Only this strategy; repeatable.")
@click.option(
    "--device",
    "devices",
    multiple=True,
    type=click.Choice([device.value for device in Device]),
    help="Only this device; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be run, and about how long it takes.")
@click.option(
    "--check", "checking", is_flag=True, help="Run, known or not, and fail where the evidence says otherwise."
)
@click.option("--again", is_flag=True, help="Measure what is known already too.")
@click.option("--allow-empty", is_flag=True, help="Exit with 0 when the selection names no cell.")
@click.option("--keep", is_flag=True, help="Keep environments that are made for this.")
@click.option(
    "--evidence",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=evidence.EVIDENCE,
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
    known = evidence.read(options["folder"])
    selection = Selection(ids, (), options["strategies"], tuple(map(Device, options["devices"])))
    try:
        wishes = select(load_shelf(places), selection)
    except NothingToRunError as error:
        if not options["allow_empty"]:
            raise
        show_text(out, str(error))
        return AGREES
    todo = agenda(wishes, [*map(stack, options["stacks"])] or [*load_stacks().values()], known)
    everything = options["again"] or options["checking"]
    for line in plan.lines(todo, known, everything=everything):
        show_text(out, line, "" if line.startswith(todo.stacks[0].name) else "dim")
    if options["dry_run"]:
        return AGREES
    watch = Live(out, options["results"], append=True, verbose=False)
    seen: list[Result] = []
    unmade = False
    with watch:
        try:
            with interrupting():
                for result in measure(
                    todo,
                    options["results"],
                    watch,
                    (lambda _: None) if options["checking"] else (lambda one: evidence.write([one], options["folder"])),
                    everything=everything,
                    jobs=options["jobs"],
                    leave=options["keep"],
                ):
                    watch.finished(result)
                    seen.append(result)
                    unmade = unmade or result.cell.environment.broken is not None
        except KeyboardInterrupt as interruption:
            watch.close(interrupted=True, summary=False)
            return exit_code(interruption)
    if not seen:
        return AGREES
    watch.close(interrupted=False, summary=False)
    if options["checking"]:
        disagreements = check.against(seen, known)
        for one in disagreements:
            show_text(out, str(one), "yellow" if one.tone is Tone.NEWS else "red")
        show_text(out, f"{len(seen)} cells looked at, {len(disagreements)} not as their evidence says")
        return DISAGREES if disagreements or unmade or watch.lost else AGREES
    disagree = [result for result in seen if result.verdict.tone in {Tone.NEWS, Tone.TROUBLE}]
    return DISAGREES if disagree or unmade or watch.lost else AGREES
