"""`repros run`: run cells, explain those that disagree, and show a table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from repros.authoring.check.by_hand import shell_command
from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.live import LiveReporter
from repros.cli.shared.on import engine_on, on_option
from repros.cli.shared.options import (
    catalogue_option,
    narrowing_options,
    python_option,
    side_by_side_options,
    stacks_option,
    to_devices,
)
from repros.cli.shared.output import console, show_text
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.cli.shared.streams import echo
from repros.cli.shared.subset import describe, subset_options
from repros.cli.shared.where import choose_where
from repros.engine import environments, evidence, record
from repros.engine.environment import Targets
from repros.engine.evidence.timings import recorded_timings
from repros.engine.matrix.subset import SubsetOptions, draw_subset
from repros.engine.pipeline import run_specs
from repros.engine.plan import CellSpec, NothingToRunError, Selection, select
from repros.engine.record import LATEST, begin_results
from repros.engine.run_options import RunOptions
from repros.model import Device, Launch
from repros.model.settings import CatalogueLocations
from repros.text.wording import relative_to_cwd

AUTO = "auto"
"""Warm, but cold for the strategies that a repro lists as cold."""


def _to_launch(_: click.Context, __: click.Parameter, name: str) -> Launch | None:
    return None if name == AUTO else Launch(name)


@click.command(
    epilog=example("repros run RPR-0005 --strategy ddp", "repros run RPR-0003 --python ~/project/.venv"),
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@stacks_option("Stack to run on; 'home' is each repro's reference stack. Repeatable. Default: home and current.")
@python_option("Run on this interpreter or environment; nothing is installed into it.")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant; repeatable.")
@narrowing_options
@subset_options
@click.option(
    "--results",
    "--json",
    "results",
    type=click.Path(dir_okay=False, path_type=Path),
    default=LATEST,
    show_default=True,
    metavar="FILE",
    help="JSON Lines file for the results; logs go to the folder runs next to it.",
)
@click.option("--append", is_flag=True, help="Add to the results file instead of replacing it.")
@side_by_side_options("REPROS_JOBS")
@click.option(
    "--launch",
    type=click.Choice([AUTO, *(launch.value for launch in Launch)]),
    default=AUTO,
    callback=_to_launch,
    show_default=True,
    help="Launch of ranks: forked from a process that has imported the libraries (warm), or by `python script.py` "
    "(cold); auto is warm unless the launcher is part of the failure.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run each cell N times; a cell with differing outcomes is flaky.",
)
@click.option(
    "--require",
    multiple=True,
    type=click.Choice([device.value for device in Device]),
    callback=to_devices,
    help="Fail if this device is missing, instead of skipping its cells; repeatable.",
)
@click.option(
    "--allow-empty", is_flag=True, help="Exit with 0 and empty the results file if the selection has no cell."
)
@click.option("--no-summary", is_flag=True, help="Omit the table; `repros summary` prints it later.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Also print unavailable cells, and the message of each failure that agrees."
)
@click.option(
    "--by-hand",
    is_flag=True,
    help="Print the command that runs each cell without repros, also on the simulated accelerator; run nothing.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only cells that disagree, and the counts.")
@on_option
@catalogue_option
def run(
    ids: tuple[str, ...],
    stacks: tuple[str, ...],
    python: Path | None,
    variants: tuple[str, ...],
    strategies: tuple[str, ...],
    devices: tuple[Device, ...],
    results: Path,
    jobs: int | None,
    launch: Launch | None,
    repeat: int,
    require: tuple[Device, ...],
    on: str | None,
    places: CatalogueLocations,
    subset: SubsetOptions | None,
    *,
    share_gpus: bool,
    append: bool,
    allow_empty: bool,
    no_summary: bool,
    verbose: bool,
    quiet: bool,
    by_hand: bool,
) -> int:
    """Run repros and report the verdict of each cell.

    Without an ID, the whole catalogue runs. Exit code: 0 if every cell that ran agrees with its documentation, 1 if a
    cell disagrees, 2 if the request cannot be met. Ctrl-C, SIGTERM and SIGHUP end the running cells and print the
    results so far; the exit code is then 128 plus the signal's number.
    """
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    observer = LiveReporter(console(), results, append=append, verbose=verbose, quiet=quiet)
    try:
        specs = select(load_catalogue(places), Selection(ids, variants, strategies, devices))
        specs, where = _draw(specs, choose_where(stacks, python, places), subset, places, stderr=by_hand)
        if by_hand:
            return _print_commands(specs, where)
        if not specs:
            return _record_nothing(results, "nothing to run", observer, append=append)
        options = RunOptions(jobs, launch, repeat, require, recorded_timings(places), share_gpus)
        return _run(specs, where, results, observer, options, on=on, summary=not no_summary)
    except NothingToRunError as error:
        if by_hand or not allow_empty:
            raise
        return _record_nothing(results, str(error), observer, append=append)


def _draw(
    specs: list[CellSpec], where: Targets, subset: SubsetOptions | None, places: CatalogueLocations, *, stderr: bool
) -> tuple[list[CellSpec], Targets]:
    """Draw a subset of the cells, and tell what it leaves out; all of them without options."""
    if subset is None:
        return specs, where
    drawn = draw_subset(specs, where, evidence.read(locations=places), subset)
    show_text(console(stderr=stderr), describe(drawn, subset), "dim")
    return [*drawn.specs], drawn.targets


def _record_nothing(results: Path, why: str, observer: LiveReporter, *, append: bool) -> int:
    """Empty the results file, so that results of an earlier run are not taken for those of this one."""
    begin_results(results, append=append).close()
    observer.report_progress(why)
    return AGREES


def _print_commands(specs: Sequence[CellSpec], where: Targets) -> int:
    """Print the shell command of each cell whose environment exists, and list the stacks without an environment."""
    missing: dict[str, None] = {}
    for spec in specs:
        arguments = [spec.variant.name, spec.strategy, spec.device.value]
        stacks = [] if where.python else where.stacks_of(spec.repro)
        pythons = {stack.name: environments.environment_folder(stack) / "bin" / "python" for stack in stacks}
        for name, python in ({"python": where.python} if where.python else pythons).items():
            if python.exists():
                echo(shell_command(python, relative_to_cwd(spec.repro.path), arguments, spec.repro.processes))
            else:
                missing[name] = None
    for name in missing:
        command = f"python -m repros.engine.environments {name}"
        echo(f"the environment of stack {name} does not exist yet; create it: {command}", err=True)
    return AGREES


def _run(
    specs: Sequence[CellSpec],
    where: Targets,
    results: Path,
    observer: LiveReporter,
    options: RunOptions,
    *,
    on: str | None,
    summary: bool,
) -> int:
    """Run cells, print results as they arrive and the table at the end; return the exit code."""
    broken = False
    interruption: KeyboardInterrupt | None = None
    with engine_on(on) as engine:
        running = run_specs(specs, where, results, observer, replace(options, engine=engine))
        with observer:
            try:
                with interrupt_on_signals():
                    for result in running:
                        observer.finished(result)
                        broken = broken or result.cell.environment.broken is not None
            except KeyboardInterrupt as error:
                interruption = error
        observer.close(interrupted=interruption is not None, summary=summary)
    if interruption is not None:
        return interruption_exit_code(interruption)
    return DISAGREES if observer.lost or broken or record.disagreeing(observer.lines) else AGREES
