"""`repros match`: from a log to the documented failures that it may show."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from repros.cli.live import LiveReporter
from repros.cli.options import catalogue_option, example, interpreter, json_option, load_catalogue
from repros.cli.output import console, show_text
from repros.cli.signals import interrupting
from repros.engine import record
from repros.engine.catalogue import Catalogue
from repros.engine.environment import Where
from repros.engine.pipeline import run_selection
from repros.engine.plan import Selection
from repros.match import match as held_against
from repros.match import reading, text

FOUND, NOTHING = 0, 1

RUNS = Path(".repros/match.jsonl")
"""Results of what `repros match --confirm` ran; the latest run's stay as they are."""


@click.command(
    short_help="Find the documented failures that a log shows.",
    epilog=example("repros match train.log", "python train.py 2>&1 | repros match -"),
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-", metavar="[FILE|-]")
@click.option("--confirm", is_flag=True, help="Run what was found on the environment that --python names.")
@click.option("--python", type=click.Path(path_type=Path), metavar="PATH", help="The environment, for --confirm.")
@json_option
@catalogue_option
def match(file: Path, python: Path | None, places: tuple[Path, ...], *, confirm: bool, as_json: bool) -> int:
    """Find the documented failures that a log or a traceback shows.

    FILE is a log of any length and origin: several ranks at once, colours, timestamps, what launchers, pytest,
    notebooks or web pages put round it. It is held against class and message of every documented failure, then the
    stack, then the versions that it tells. `certain`: these agree, or the repro's own script failed. `likely`: class
    and message agree, and the stack where it matters. `possible`: other causes have this message too, or there is too
    little to see.

    Exit code: 0 when something was found, 1 when it is no known repro, 2 when FILE cannot be read as a log.
    """
    if confirm != (python is not None):
        raise click.UsageError("--confirm and --python PATH go together: it says where to run what was found.")
    catalogue = load_catalogue(places)
    found = held_against(reading.lines(_read(file), str(file) if file != Path("-") else "the input"), catalogue)
    ids = [candidate.repro.id for candidate in found.candidates]
    results = _confirm(catalogue, ids, python, quiet=as_json) if python is not None and ids and as_json else []
    if as_json:
        report = text.record(found) | ({"confirmed": list(results)} if confirm else {})
        click.echo(json.dumps(report, indent=2))
    else:
        out = console()
        show_text(out, text.text(found, out.width))
        if python is not None:
            out.print()
            show_text(out, f"confirming {', '.join(ids)}" if ids else "nothing to confirm: no candidate.", "bold")
            if ids:
                _confirm(catalogue, ids, python, quiet=False)
    return FOUND if found.candidates else NOTHING


def _read(file: Path) -> bytes:
    if file != Path("-"):
        return reading.load(file)
    if sys.stdin.isatty():
        click.echo("reading a log from the terminal; Ctrl-D ends it", err=True)
    return reading.drain(sys.stdin.buffer)


def _confirm(catalogue: Catalogue, ids: Sequence[str], python: Path, *, quiet: bool) -> Sequence[record.RecordLine]:
    """Run the candidates' failing variants on an environment; return the records of what was seen."""
    observer = LiveReporter(console(stderr=quiet), RUNS, append=False, verbose=True)
    with observer, interrupting():
        where = Where(python=interpreter(python))
        for result in run_selection(catalogue, Selection(tuple(ids), ("failing",)), where, RUNS, observer):
            observer.finished(result)
    observer.close(interrupted=False, summary=False)
    return observer.lines
