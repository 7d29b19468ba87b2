"""`repros reduce`: minimize a failing script."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from packaging.requirements import Requirement

from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES
from repros.cli.shared.options import catalogue_option, json_option
from repros.cli.shared.output import console, show_text, write_new
from repros.cli.shared.script_options import (
    issue_options,
    running_options,
    warn,
    words_argument,
)
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.weak_sandbox import accept_sandbox
from repros.cli.shared.where import choose_where, extend_stacks, requirement_option, with_option
from repros.engine.inventory import usable_cores
from repros.engine.own_folder import new_log_folder
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.scripts.reduce.json_format import reduction_to_json
from repros.scripts.reduce.reduction import ReduceOptions, reduce_script
from repros.scripts.reduce.text import format_reduction
from repros.scripts.try_.request import ScriptRequest, read_task
from repros.scripts.try_.run import LOGS
from repros.text.control import dump_json

_SECONDS = 60


@click.command(
    epilog=example(
        "repros reduce train.py --stack 2024-09",
        "repros reduce train.py --ranks 2 --minutes 5 -- --epochs 1",
        'repros reduce --from-issue issue.md --text "weights differ" --clean-on 2024-09',
    ),
)
@words_argument
@issue_options
@click.option("--stack", default="current", show_default=True, metavar="NAME", help="Stack on which SCRIPT fails.")
@with_option
@click.option("--clean-on", metavar="NAME", help="Stack on which neither the original nor the reduced script may fail.")
@requirement_option(
    "--clean-with",
    "cleaning",
    "Package for the run that must not fail, such as a fixed release; replaces or extends the stack of --clean-on "
    "(default: of --stack). Repeatable.",
)
@click.option(
    "--text",
    "texts",
    multiple=True,
    metavar="TEXT",
    help="Text that the output must keep, for failures that are wrong numbers; repeatable.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=10,
    show_default=True,
    metavar="N",
    help="Time limit for the search; the smallest script so far is written, as on Ctrl-C.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Candidates to run in parallel. Default: one per core."
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="Output file. Default: SCRIPT.reduced.py."
)
@click.option("--force", is_flag=True, help="Overwrite an existing output file.")
@running_options
@json_option
@catalogue_option
def reduce(
    request: ScriptRequest,
    stack: str,
    wanted: tuple[Requirement, ...],
    clean_on: str | None,
    cleaning: tuple[Requirement, ...],
    texts: tuple[str, ...],
    minutes: float,
    jobs: int | None,
    output: Path | None,
    places: CatalogueLocations,
    *,
    force: bool,
    as_json: bool,
) -> int:
    """Minimize a failing script while it still fails in the same way.

    Statements, arguments, layers, wrapping calls, steps, sizes and ranks are removed or reduced. A candidate is kept if
    it fails in the same way (the interestingness test): the same exception (class, message without numbers, and
    innermost function of the library), the same hang, or every --text in its output. Each candidate runs in the sandbox
    of `repros try`, in a process forked from one that has imported the libraries. The result is confirmed by a fresh
    run.

    The reduced script has the same symptom but may have another cause: read it before you post it. With --text another
    cause is likely; to rule it out, name a stack (--clean-on) or a release (--clean-with) on which the script must not
    fail.

    Exit code: 0 if a reduced script was written, 2 if SCRIPT does not fail or the request cannot be met.
    """
    output = output or _output(request.issue or Path(request.words[0]))
    if output.exists() and not force:
        raise ReprosError(f"{output} exists already; overwrite it with --force, or name another with --output.")
    jobs = jobs or usable_cores()
    task = read_task(replace(request, watch=False), at_once=jobs)
    accept_sandbox(task.sandbox, is_accepted=request.weak_sandbox)
    where, report_progress = choose_where((stack,), None, places), partial(show_text, console(stderr=True), style="dim")
    with interrupt_on_signals():
        where = extend_stacks(where, wanted, report_progress)
        warn(task)
        clean = choose_where((clean_on or stack,), None, places) if clean_on or cleaning else None
        clean = extend_stacks(clean, cleaning, report_progress) if clean else None
        options = ReduceOptions(minutes * _SECONDS, jobs, texts, clean)
        found = reduce_script(task, where, new_log_folder(LOGS), options, report_progress)
    page = (
        dump_json(reduction_to_json(found, task.script.origin, str(output)))
        if as_json
        else format_reduction(found, output)
    )
    write_new(output, found.source, force=force)
    show_text(console(), page)
    return AGREES


def _output(script: Path) -> Path:
    return script.with_name(f"{script.name.removesuffix('.py').removesuffix('.md')}.reduced.py")
