"""`repros try`: an untrusted script, or the code block of an issue, in a sandbox on chosen stacks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
from packaging.requirements import Requirement

from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.script_options import (
    LOGS,
    find_script,
    issue_options,
    make_task,
    running_options,
    words_argument,
)
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.streams import echo_json
from repros.cli.shared.where import choose_where, extend_stacks, with_option
from repros.engine.own_folder import new_log_folder
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.scripts.try_.json_format import runs_to_json
from repros.scripts.try_.outcome import Status
from repros.scripts.try_.run import ScriptRun, run_on_stacks, with_known
from repros.scripts.try_.task import Task
from repros.scripts.try_.text import describe_missing, format_run, format_warning


@click.command(
    epilog=example(
        "repros try train.py --ranks 2 -- --epochs 1",
        "repros try train.py --gpus 2 --stack 2024-09 --stack current",
        "repros try --from-issue issue.md --stack 2023-05 --with torchmetrics==1.0.3",
    ),
)
@words_argument
@issue_options
@click.option("--stack", "stacks", multiple=True, metavar="NAME", help="Stack to run on; repeatable. Default: current.")
@with_option
@running_options
@click.option("--no-watch", is_flag=True, help="Disable the checks of `repros watch`.")
@json_option
@catalogue_option
def try_script(
    words: tuple[str, ...],
    issue: Path | None,
    block: int | None,
    stacks: tuple[str, ...],
    wanted: tuple[Requirement, ...],
    places: CatalogueLocations,
    *,
    no_watch: bool,
    as_json: bool,
    **running: Any,
) -> int:
    """Run an untrusted script in a sandbox on chosen stacks, and report the outcome and documented failures.

    SCRIPT runs unmodified in a temporary folder, with the neighbouring modules that it imports. It has no access to
    your tokens, the network or your files, where the system supports that. The outcome on each stack is an exception
    with its signature, a hang (with each rank's wait location), or a clean exit.

    Dependencies are read from the PEP 723 block and the imports of SCRIPT. A stack that lacks one is skipped, and the
    missing packages are listed. Nothing is installed without --with, which changes packages of the stack: it prints the
    changes first and caches the environment.

    Exit code: 0 if every run exits cleanly without a known failure, 1 otherwise, 2 if the request cannot be met.
    """
    script, arguments = find_script(words, issue, block)
    where = choose_where(stacks, None, places, default=("current",))
    task = make_task(script, arguments, watch=not no_watch, **running)
    catalogue, err = load_catalogue(places), console(stderr=True)
    report_progress = partial(show_text, err)
    with interrupt_on_signals():
        where = extend_stacks(where, wanted, report_progress)
        started = run_on_stacks(
            task,
            where,
            new_log_folder(LOGS),
            report_progress=report_progress,
            on_start=lambda: show_text(err, format_warning(task, err.width), "yellow"),
        )
        runs: list[ScriptRun] = []
        for run in with_known(started, catalogue):
            if not as_json and run.outcome.status is not Status.NOT_RUN:
                _show(run, runs)
            runs.append(run)
    return _finish(task, runs, as_json=as_json)


def _show(run: ScriptRun, earlier: list[ScriptRun]) -> None:
    """Print a run, after earlier ones."""
    out = console()
    if earlier:
        show_text(out, "")
    show_text(out, format_run(run, out.width))


def _finish(task: Task, runs: list[ScriptRun], *, as_json: bool) -> int:
    """Print the stacks on which the script did not run, or all outcomes as JSON, and return the exit code.

    Raises:
        ReprosError: the script ran nowhere.
    """
    not_run = [run for run in runs if run.outcome.status is Status.NOT_RUN]
    if len(not_run) == len(runs):
        notes = (*(run.outcome.note for run in runs), describe_missing(runs))
        raise ReprosError(f"the script ran nowhere: {'; '.join(filter(None, notes))}.")
    if as_json:
        echo_json(runs_to_json(task, runs))
    else:
        for run in not_run:
            _show(run, runs)
    return AGREES if all(run.is_clean for run in runs if run.outcome.status is not Status.NOT_RUN) else DISAGREES
