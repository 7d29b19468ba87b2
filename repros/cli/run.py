"""`repros run` and `repros summary`: cells as they come, disagreements explained, the table at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from repros.cli.live import LiveReporter
from repros.cli.options import (
    LATEST,
    catalogue_option,
    example,
    json_option,
    load_catalogue,
    narrowing_options,
    read_results,
    where_meant,
)
from repros.cli.output import console, show_text
from repros.cli.signals import exit_code, interrupting
from repros.engine.cells import JOBS
from repros.engine.pipeline import RunOptions, run_selection
from repros.engine.plan import NothingToRunError, Selection
from repros.model import Device, Launch
from repros.text import table

AGREES, DISAGREES = 0, 1

AUTO = "auto"


@click.command(
    short_help="Run repros; say what happened in each cell.",
    epilog=example("repros run RPR-0005 --strategy ddp", "repros run RPR-0003 --python ~/project/.venv"),
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--stack",
    "stacks",
    multiple=True,
    metavar="NAME",
    help="Stack to run on; 'home' is each repro's own. Repeatable; home and current if not given.",
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Run on this interpreter or environment as it is; nothing is installed into it.",
)
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant; repeatable.")
@narrowing_options
@click.option(
    "--results",
    "--json",
    "results",
    type=click.Path(dir_okay=False, path_type=Path),
    default=LATEST,
    show_default=True,
    metavar="FILE",
    help="JSON Lines file for the results; logs go to runs/ beside it.",
)
@click.option("--append", is_flag=True, help="Add to the results file rather than start it anew.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=JOBS,
    show_default=True,
    envvar="REPROS_JOBS",
    metavar="N",
    help="Cells to run side by side; also REPROS_JOBS in the environment.",
)
@click.option(
    "--launch",
    type=click.Choice([AUTO, *(mode.value for mode in Launch)]),
    default=AUTO,
    show_default=True,
    help="Fork ranks from a process that has imported the libraries (warm), or `python script.py` as a user would "
    "(cold); auto is warm except where the launcher is part of the failure.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run each cell N times; one that does not always end the same is flaky.",
)
@click.option(
    "--require",
    multiple=True,
    type=click.Choice([device.value for device in Device]),
    help="Refuse to run where this tier is not to be had, rather than leave its cells out; repeatable.",
)
@click.option("--allow-empty", is_flag=True, help="Exit with 0 when the selection names no cell.")
@click.option("--no-summary", is_flag=True, help="Leave the table out, for `repros summary` to show later.")
@click.option("--verbose", "-v", is_flag=True, help="Show cells that cannot be run here one by one.")
@click.option("--quiet", "-q", is_flag=True, help="Show only what does not agree, and the counts.")
@catalogue_option
def run(ids: tuple[str, ...], places: tuple[Path, ...], **options: Any) -> int:
    """Run repros and say for each cell what happened.

    Without an ID the whole catalogue is run. Exit code: 0 when every cell that was run agrees with what its
    repro documents, 1 when one does not, 2 when the request cannot be met. Ctrl-C, SIGTERM and SIGHUP end what runs
    and show what is done so far; then it is 128 and the signal's number.
    """
    if options["quiet"] and options["verbose"]:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    where = where_meant(options["stacks"], options["python"])
    devices = tuple(Device(name) for name in options["devices"])
    selection = Selection(ids, options["variants"], options["strategies"], devices)
    catalogue = load_catalogue(places)
    results: Path = options["results"]
    observer = LiveReporter(
        console(), results, append=options["append"], verbose=options["verbose"], quiet=options["quiet"]
    )
    interruption: KeyboardInterrupt | None = None
    how = RunOptions(
        jobs=options["jobs"],
        launch=None if options["launch"] == AUTO else Launch(options["launch"]),
        repeat=options["repeat"],
        require=tuple(Device(name) for name in options["require"]),
    )
    unmade = False
    with observer:
        try:
            with interrupting():
                for result in run_selection(catalogue, selection, where, results, observer, how):
                    observer.finished(result)
                    unmade = unmade or result.cell.environment.broken is not None
        except NothingToRunError as error:
            if not options["allow_empty"]:
                raise
            observer.say(str(error))
            return AGREES
        except KeyboardInterrupt as error:
            interruption = error
    observer.close(interrupted=interruption is not None, summary=not options["no_summary"])
    if interruption is not None:
        return exit_code(interruption)
    return DISAGREES if observer.lost or unmade or table.disagreeing(observer.lines) else AGREES


@click.command(
    short_help="Show the table of a results file again.",
    epilog=example("repros summary", "repros summary results.jsonl"),
)
@click.argument("file", type=click.Path(path_type=Path), default=LATEST)
@click.option("--verbose", "-v", is_flag=True, help="Show cells that could not be run one by one.")
@json_option
def summary(file: Path, *, verbose: bool, as_json: bool) -> int:
    """Show the table of a results file again; exit code 1 when a cell disagreed.

    FILE is .repros/latest.jsonl if not given.
    """
    lines = read_results(file)
    if as_json:
        click.echo(json.dumps(table.latest(lines), indent=2, ensure_ascii=False))
    else:
        out = console()
        show_text(out, table.table(lines, out.width, verbose=verbose))
    return DISAGREES if table.disagreeing(lines) else AGREES
