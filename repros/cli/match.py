"""`repros match`: find the documented failures that a log shows."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, example, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo, echo_json
from repros.match import log, match_log
from repros.match.json_format import match_to_json
from repros.match.text import format_match
from repros.settings import Places

FOUND, NOT_FOUND = 0, 1


@click.command(
    epilog=example("repros match train.log", "python train.py 2>&1 | repros match -"),
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-", metavar="[FILE|-]")
@click.option("--confirm", is_flag=True, help="Run the failing variants of the candidates on --python's environment.")
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Environment for --confirm; it has the versions that the log does not state.",
)
@json_option
@catalogue_option
def match(file: Path, python: Path | None, places: Places, *, confirm: bool, as_json: bool) -> int:
    """Find the documented failures that a log or a traceback shows.

    FILE is a log of any length and origin: mixed ranks, colours, timestamps, and the prefixes of launchers, pytest,
    notebooks and web pages. Each exception is compared with class and message of every documented failure, then its
    stack with the documented frames, then the versions that the log states with the affected releases.

    `certain`: all of these agree, or the traceback contains the repro's own script. `likely`: class and message agree,
    and the stack if the repro names frames. `possible`: less is in the log (a part of the message, no class, no
    traceback, a warning), or other failures have this message too, or the versions are not affected. `ruled out`: a
    line of the log contradicts it.

    Exit code: 0 if a repro was found, 1 if none was, 2 if FILE cannot be read as a log.
    """
    if confirm != (python is not None):
        raise click.UsageError(
            "--confirm needs --python PATH, the environment to run on, and --python needs --confirm."
        )
    catalogue = load_catalogue(places)
    lines = log.decode_lines(_read_log(file), str(file) if file != Path("-") else "the input")
    environment = None
    if python is not None:
        from repros.cli.shared.confirm import describe, run_candidates  # noqa: PLC0415 - nothing else needs the engine

        environment = describe(python)
    found = match_log(lines, catalogue, environment)
    ids = [candidate.repro.id for candidate in found.candidates]
    if as_json:
        confirmed = run_candidates(catalogue, ids, python, quiet=True) if python is not None and ids else []
        echo_json({**match_to_json(found), **({"confirmed": confirmed} if confirm else {})})
    else:
        out = console()
        show_text(out, format_match(found, out.width))
        if python is not None:
            out.show()
            show_text(out, f"confirming {', '.join(ids)}" if ids else "nothing to confirm: no candidate.", "bold")
            if ids:
                run_candidates(catalogue, ids, python, quiet=False)
    return FOUND if found.candidates else NOT_FOUND


def _read_log(file: Path) -> bytes:
    if file != Path("-"):
        return log.read_file(file)
    if sys.stdin.isatty():
        echo("reading a log from the terminal; Ctrl-D ends it", err=True)
    return log.read_stream(sys.stdin.buffer)
