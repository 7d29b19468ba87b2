"""`repros matrix`: measure the catalogue on all stacks, or compare it with the evidence."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.live import LiveReporter
from repros.cli.shared.on import engine_on, on_option
from repros.cli.shared.options import catalogue_option, narrowing_options, side_by_side_options, stacks_option
from repros.cli.shared.output import Page, console, show_text
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.engine import evidence
from repros.engine.evidence import Evidence, Measurement
from repros.engine.evidence.timings import recorded_timings
from repros.engine.matrix.check import find_disagreements
from repros.engine.matrix.measure import Store, measure
from repros.engine.matrix.worklist import Worklist, build_worklist, find_trouble, forecast, pending
from repros.engine.plan import CellSpec, NothingToRunError, Selection, select
from repros.engine.record import RecordLine, disagreeing, latest, read_results
from repros.engine.run_options import RunOptions
from repros.engine.stacks import load_stacks, stack
from repros.model import Category, CellResult, Device, Stack, Verdict
from repros.model.settings import CatalogueLocations
from repros.text.matrix import format_seconds, worklist_lines
from repros.text.table import counts_line
from repros.text.wording import count

RESULTS = Path(".repros/matrix.jsonl")
"""Results of all matrix runs, below the working directory."""


@dataclass(frozen=True)
class MeasureOptions:
    """Options of a measurement of the worklist."""

    check: bool
    again: bool
    folder: Path | None
    """Folder for the evidence; None for that of each script's catalogue."""
    results: Path
    running: RunOptions

    @property
    def include_fresh(self) -> bool:
        """Whether to measure units with fresh evidence as well."""
        return self.again or self.check


@click.command(
    epilog=example("repros matrix --dry-run", "repros matrix --stack 2023-12 --check"),
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@stacks_option("Only this stack; repeatable.")
@narrowing_options
@click.option(
    "--dry-run", is_flag=True, help="Print the number of cells to run and the time on this machine; run nothing."
)
@click.option(
    "--check", is_flag=True, help="Run all cells and compare the verdicts with the evidence, without writing any."
)
@click.option(
    "--from",
    "recorded",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --check: compare the results in this file instead of running cells.",
)
@click.option("--again", is_flag=True, help="Also measure cells with fresh evidence.")
@click.option("--allow-empty", is_flag=True, help="Exit with 0 if the selection, or the file of --from, has no cell.")
@click.option("--keep", is_flag=True, help="Keep the environments that this run creates.")
@click.option(
    "--evidence",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder with the evidence. Default: `evidence` in each script's catalogue.",
)
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RESULTS,
    show_default=True,
    metavar="FILE",
    help="JSON Lines file to append the results to; logs go to the folder runs next to it.",
)
@side_by_side_options()
@on_option
@catalogue_option
def matrix(
    ids: tuple[str, ...],
    stacks: tuple[str, ...],
    strategies: tuple[str, ...],
    devices: tuple[str, ...],
    recorded: Path | None,
    folder: Path | None,
    results: Path,
    jobs: int | None,
    on: str | None,
    places: CatalogueLocations,
    *,
    dry_run: bool,
    check: bool,
    again: bool,
    allow_empty: bool,
    keep: bool,
    share_gpus: bool,
) -> int:
    """Measure the catalogue on all stacks.

    Only cells without fresh evidence run. Evidence becomes stale when the script's code, the stack's lock or the engine
    changes. Each measurement is written on completion, so an interrupted run resumes. A missing environment is created
    while the previous stack's cells run, and removed afterwards.

    With --check, all cells run, nothing is written, and each verdict that differs from its evidence is reported as news
    or trouble. Exit code: 0 if every cell agrees with its header (with --check: its evidence), 1 if one disagrees, 2 if
    the request cannot be met.
    """
    out, known = console(), evidence.read(folder, places)
    if recorded and not check:
        raise click.UsageError("--from needs --check: evidence is written only from cells that this command runs.")
    if recorded:
        return _compare_with_evidence(out, read_results(recorded, allow_empty=allow_empty), known)
    try:
        specs = select(load_catalogue(places), Selection(ids, (), strategies, tuple(map(Device, devices))))
    except NothingToRunError as error:
        if not allow_empty:
            raise
        show_text(out, str(error))
        return AGREES
    with engine_on(None if dry_run else on) as engine:
        timings = recorded_timings(places, known)
        running = RunOptions(jobs, timings=timings, share_gpus=share_gpus, keep_environments=keep, engine=engine)
        options = MeasureOptions(check=check, again=again, folder=folder, results=results, running=running)
        worklist = build_worklist(specs, _chosen(stacks, places), known, engine.gpus)
        _show_worklist(out, worklist, specs, options, dry_run=dry_run)
        code = AGREES if dry_run else _measure(out, worklist, known, options)
    trouble = not check and _show_trouble(out, worklist, evidence.read(folder, places)) and not dry_run
    return DISAGREES if trouble and code == AGREES else code


def _chosen(names: Sequence[str], places: CatalogueLocations) -> list[Stack]:
    """Return the stacks of these names, or all."""
    return [stack(name, places) for name in names] or [*load_stacks(places).values()]


def _show_worklist(
    out: Page, worklist: Worklist, specs: Sequence[CellSpec], options: MeasureOptions, *, dry_run: bool
) -> None:
    """Show what there is to run, and remove the evidence of what cannot run any more."""
    planned = partial(forecast, options=options.running)
    for line in worklist_lines(worklist, planned, include_fresh=options.include_fresh):
        show_text(out, line, "dim")
    if worklist.obsolete and not options.check:
        _remove_obsolete(out, worklist, specs, options.folder, dry_run=dry_run)


def _remove_obsolete(
    out: Page, worklist: Worklist, specs: Sequence[CellSpec], folder: Path | None, *, dry_run: bool
) -> None:
    """Remove the evidence of units that can no longer run; a dry run only lists them."""
    repros = {spec.repro.id: spec.repro for spec in specs}
    stacks = {known.name: known for known in worklist.stacks}
    for unit in worklist.obsolete:
        if not dry_run:
            own = evidence.folder_for(repros[unit.unit.repro], stacks[unit.unit.stack])
            evidence.remove(unit.unit, folder or own)
        verb = "to be removed" if dry_run else "removed"
        show_text(out, f"{verb}: the evidence of {unit.unit}, which cannot run there any more", "yellow")


def _show_trouble(out: Page, worklist: Worklist, known: Evidence) -> bool:
    """Report evidence of an undocumented failure; return whether there is any."""
    found = list(find_trouble(worklist, known))
    for unit, variant in found:
        verdict = known[unit].variants[variant].verdict
        problem = f"the evidence of {unit.cell_label(variant)} is {verdict}, which is no evidence about a range"
        show_text(out, f"{problem}; fix the script, or exclude these versions with requires", "red")
    return bool(found)


def _measure(out: Page, worklist: Worklist, known: Evidence, options: MeasureOptions) -> int:
    """Run the cells, then store the measurements or compare them with the evidence; return the exit code."""
    planned = forecast(pending(worklist.entries, include_fresh=options.include_fresh), options.running)
    started = time.monotonic()
    observer = LiveReporter(out, options.results, append=True, verbose=False)
    running = measure(
        worklist,
        options.results,
        observer,
        _writer(worklist, options),
        include_fresh=options.include_fresh,
        options=options.running,
    )
    with observer:
        try:
            with interrupt_on_signals():
                broken = _report_results(out, running, observer)
        except KeyboardInterrupt as interruption:
            observer.close(interrupted=True, summary=False)
            return interruption_exit_code(interruption)
    if not observer.lines:
        return AGREES
    show_text(out, counts_line(latest(observer.lines)))
    show_text(out, f"planned {format_seconds(planned)}, taken {format_seconds(time.monotonic() - started)}", "dim")
    observer.close(interrupted=False, summary=False)
    if options.check:
        code = _compare_with_evidence(out, observer.lines, known)
    else:
        code = DISAGREES if disagreeing(observer.lines) else AGREES
    return DISAGREES if broken or observer.lost else code


def _writer(worklist: Worklist, options: MeasureOptions) -> Store:
    """Return the function that writes a measurement into the evidence of its catalogue."""
    repros = {spec.repro.id: spec.repro for entry in worklist.entries for spec in entry.specs}
    stacks = {known.name: known for known in worklist.stacks}

    def write(measurement: Measurement) -> None:
        if not options.check:
            unit = measurement.unit
            own = evidence.folder_for(repros[unit.repro], stacks[unit.stack])
            evidence.write([measurement], options.folder or own)

    return write


def _report_results(out: Page, running: Iterable[CellResult], observer: LiveReporter) -> bool:
    """Print results as they arrive; return whether an environment could not be created."""
    broken = False
    shown = set[str]()
    for result in running:
        observer.finished(result)
        broken = broken or result.cell.environment.broken is not None
        if result.verdict is Verdict.UNAVAILABLE and result.reason not in shown:
            shown.add(result.reason)
            show_text(out, f"not run on {result.cell.environment.name}: {result.reason}", "red")
    return broken


def _compare_with_evidence(out: Page, lines: Sequence[RecordLine], known: Evidence) -> int:
    """Print the cells whose verdict differs from the evidence; return the exit code."""
    disagreements = find_disagreements(lines, known)
    for disagreement in disagreements:
        show_text(out, str(disagreement), "yellow" if disagreement.category is Category.NEWS else "red")
    number = len(disagreements)
    outcome = f"{number} {'differs' if number == 1 else 'differ'} from" if disagreements else "all agree with"
    categories = Counter(Verdict(line["verdict"]).category for line in latest(lines))
    unjudged = categories.pop(Category.NOT_JUDGED, 0)
    categories.pop(Category.SKIPPED, 0)
    checked = categories.total()
    show_text(out, f"{count(checked, 'cell')} checked" + (f": {outcome} the evidence" if checked else ""))
    if unjudged:
        show_text(out, f"{count(unjudged, 'cell')} could not be judged, and may differ", "red")
    return DISAGREES if disagreements or unjudged else AGREES
