"""`repros summary`: the table of a results file."""

from __future__ import annotations

from pathlib import Path

import click

from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.options import json_option, narrowing_options
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo_json
from repros.engine import record
from repros.engine.record import LATEST, read_results
from repros.model import Device, Verdict, cell_label
from repros.model.errors import ReprosError
from repros.text import table
from repros.text.styled import Text


@click.command(
    epilog=example("repros summary", "repros summary results.jsonl --strategy ddp"),
)
@click.argument("file", type=click.Path(path_type=Path), default=LATEST)
@narrowing_options
@click.option("--allow-empty", is_flag=True, help="Exit with 0 if the file has no result of the selection.")
@click.option("--verbose", "-v", is_flag=True, help="Also print unavailable cells.")
@click.option("--quiet", "-q", is_flag=True, help="Print only cells that disagree, and the counts.")
@json_option
def summary(
    file: Path,
    strategies: tuple[str, ...],
    devices: tuple[Device, ...],
    *,
    allow_empty: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Print the table of a results file; exit code 1 if a cell disagreed.

    The default FILE is .repros/latest.jsonl.
    """
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    lines = [
        line
        for line in read_results(file, allow_empty=allow_empty)
        if line["strategy"] in (strategies or (line["strategy"],)) and line["device"] in (devices or (line["device"],))
    ]
    if not lines and not allow_empty:
        raise ReprosError(f"{file} holds no result of {', '.join((*strategies, *devices))}.")
    if as_json:
        echo_json(record.latest(lines))
    elif quiet:
        for line in record.disagreeing(lines):
            show_text(console(), _one_line(line))
        show_text(console(), table.counts_line(record.latest(lines)))
    else:
        out = console()
        show_text(out, table.summary_table(lines, out.width, verbose=verbose))
    return DISAGREES if record.disagreeing(lines) else AGREES


def _one_line(line: record.RecordLine) -> Text:
    """Return the line of a cell that does not agree."""
    environment = table.short_environment_name(line["stack"]["name"])
    label = cell_label(line["repro"], line["variant"], line["strategy"], Device(line["device"]), environment)
    text = Text().append(f"{line['verdict']:<11} ", table.verdict_style(Verdict(line["verdict"])))
    return text.append(label).append(f"  {line['reason']}", "dim")
