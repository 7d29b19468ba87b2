"""`repros summary`: the table of a results file."""

from __future__ import annotations

from pathlib import Path

import click

from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.options import example, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo_json
from repros.engine import record
from repros.engine.results_file import LATEST, read_results
from repros.text.table import summary_table


@click.command(
    epilog=example("repros summary", "repros summary results.jsonl"),
)
@click.argument("file", type=click.Path(path_type=Path), default=LATEST)
@click.option("--verbose", "-v", is_flag=True, help="Show each cell that could not be run.")
@json_option
def summary(file: Path, *, verbose: bool, as_json: bool) -> int:
    """Show the table of a results file again; exit code 1 when a cell disagreed.

    FILE is .repros/latest.jsonl if not given.
    """
    lines = read_results(file)
    if as_json:
        echo_json(record.latest(lines))
    else:
        out = console()
        show_text(out, summary_table(lines, out.width, verbose=verbose))
    return DISAGREES if record.disagreeing(lines) else AGREES
