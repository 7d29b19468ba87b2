"""`repros watch`: run a training program and report documented failures in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import BAD_INPUT
from repros.cli.shared.inputs import find_interpreter, load_catalogue
from repros.cli.shared.options import catalogue_option, program_option
from repros.cli.shared.output import console, show_text
from repros.diagnose.watch import session
from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import Identified
from repros.diagnose.watch.json_format import JsonLines
from repros.diagnose.watch.names import FIRST_NAN, explain, refuse_unknown_checks
from repros.diagnose.watch.report import Report
from repros.diagnose.watch.text import format_crash, format_finding, format_summary
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.simulate import variables

FOUND = 3
"""The exit code of `--strict` for a program with a finding."""


def _explain(context: click.Context, _: click.Parameter, name: str | None) -> None:
    if name is not None:
        show_text(console(), explain(name))
        context.exit()


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=example(
        "repros watch -- python train.py",
        "repros watch --strict -- torchrun --nproc-per-node 2 train.py",
        "repros watch --gpus 2 -- python train.py",
        "repros watch --first-nan -- python train.py",
    ),
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write the findings to this file."
)
@click.option("--strict", is_flag=True, help="Exit with 3 on a finding, with 2 if monitoring was incomplete.")
@click.option(
    "--every",
    type=click.IntRange(0),
    metavar="N",
    default=1000,
    show_default=True,
    help="Also inspect every N-th step.",
)
@click.option("--only", multiple=True, metavar="CHECK", help="Run only checks with this name or prefix; repeatable.")
@click.option("--skip", multiple=True, metavar="CHECK", help="Disable checks with this name or prefix; repeatable.")
@click.option("--first-nan", is_flag=True, help="Inspect every step, and locate the origin of the first NaN or inf.")
@click.option(
    "--explain",
    metavar="CHECK",
    is_eager=True,
    expose_value=False,
    callback=_explain,
    help="Print the documentation of a check, and exit.",
)
@program_option
@click.option("--gpus", type=int, metavar="N", help="Run on N simulated GPUs, like `repros simulate`.")
@catalogue_option
def watch(
    command: tuple[str, ...],
    json_file: Path | None,
    every: int,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    python: Path | None,
    gpus: int | None,
    places: CatalogueLocations,
    *,
    strict: bool,
    first_nan: bool,
) -> int:
    """Run a training program unchanged, and report documented failures in it.

    COMMAND is any program that starts Python: `python train.py`, torchrun, accelerate launch. Its output, signals and
    exit code are unchanged; findings go to stderr as they occur. Steps 1, 2, 4, 8, ... are inspected in full. Nothing
    is installed into its environment. If it crashes, its exceptions are matched as by `repros match`.

    Exit code: that of the program; 128 plus the signal's number if a signal ended it; with --strict, 3 on a finding,
    and 2 if the program succeeds but nothing was watched or monitoring was incomplete;
    2 if COMMAND cannot be started, or if
    --only or --skip match no check.
    """
    refuse_unknown_checks([*only, *skip])
    interpreter = find_interpreter(python) if python is not None else None
    simulated = variables(gpus) if gpus is not None else {}
    out = console(stderr=True)
    lines = _create(json_file) if json_file is not None else None

    def show(finding: Finding, ids: Sequence[Identified]) -> None:
        show_text(out, format_finding(finding, ids, out.width))
        if lines is not None:
            lines.write(finding, ids)

    report = Report(load_catalogue(places), show, only=only, skip=skip)
    also = FIRST_NAN if first_nan else ()
    code = session.run(command, session.SessionOptions(every, only, skip, interpreter, simulated, also), report.take)
    report.finish()
    for line in format_crash(report.crash, out.width):
        show_text(out, line)
    for line in format_summary(report, command, out.width):
        show_text(out, line)
    if lines is not None:
        lines.close()
        if lines.problem is not None:
            show_text(out, f"repros: {lines.problem}")
    return _judge(report, code) if strict else code


def _judge(report: Report, code: int) -> int:
    """Return the exit code of `--strict`: a program with incomplete monitoring is not a clean one."""
    if report.found:
        return FOUND
    return code if report.is_whole else code or BAD_INPUT


def _create(file: Path) -> JsonLines:
    try:
        return JsonLines(file)
    except OSError as error:
        problem = f"{file} cannot be written ({error.strerror}); name another file with --json."
        raise ReprosError(problem) from error
