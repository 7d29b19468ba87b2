"""`repros try`: an untrusted script, or the code block of an issue, in a sandbox on chosen stacks."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import click
from packaging.requirements import Requirement

from repros.advise.report.redact import MachineIdentity, Redactor
from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, json_option, stacks_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.script_options import (
    find_script,
    issue_options,
    issue_targets,
    make_task,
    run_warned,
    running_options,
    words_argument,
)
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.streams import echo, echo_json
from repros.cli.shared.where import with_option
from repros.engine.environment import Targets
from repros.engine.environments.downloads import find_downloads
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.scripts.try_ import markdown
from repros.scripts.try_.json_format import runs_to_json
from repros.scripts.try_.outcome import Status
from repros.scripts.try_.run import ScriptRun, with_known
from repros.scripts.try_.script import read_report
from repros.scripts.try_.task import Task
from repros.scripts.try_.text import describe_missing, format_plan, format_run


@click.command(
    epilog=example(
        "repros try train.py --ranks 2 -- --epochs 1",
        "repros try train.py --gpus 2 --stack 2024-09 --stack current",
        "repros try --from-issue issue.md --stack 2023-05 --with torchmetrics==1.0.3",
    ),
)
@words_argument
@issue_options
@stacks_option("Stack to run on; repeatable. Default: current.")
@with_option
@running_options
@click.option("--dry-run", is_flag=True, help="Print the environments and what they would download; run nothing.")
@click.option("--comment", is_flag=True, help="Print a redacted comment for the issue's thread instead of the report.")
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
    dry_run: bool,
    comment: bool,
    no_watch: bool,
    as_json: bool,
    **running: Any,
) -> int:
    """Run an untrusted script in a sandbox on chosen stacks, and report the outcome and documented failures.

    SCRIPT runs unmodified in a temporary folder, with the neighbouring modules that it imports. It has no access to
    your tokens, the network or your files, where the system supports that. The outcome on each stack is an exception
    with its signature, a hang (with each rank's wait location), or a clean exit.

    Dependencies are read from the PEP 723 block and the imports of SCRIPT. A stack that lacks one is skipped, and the
    missing packages are listed. No package is added to a stack without --with, which changes packages of the stack: it prints the
    changes first and caches the environment.

    With --from-issue and without --stack, it runs on the releases that the issue states, on the nearest stack, and on
    current, and each run is compared with the exception, the output or the hang that the issue reports: `as reported`,
    `not as reported`, or `not compared` where the issue or the run does not decide it.

    Exit code: 0 if every run exits cleanly without a known failure, 1 otherwise, 2 if the request cannot be met.
    """
    script, arguments = find_script(words, issue, block)
    report = read_report(issue, block) if issue is not None else None
    if comment and (report is None or as_json):
        raise click.UsageError("--comment needs --from-issue FILE, and excludes --json.")
    task = make_task(script, arguments, watch=not no_watch, **running)
    catalogue, report_progress = load_catalogue(places), partial(show_text, console(stderr=True))
    with interrupt_on_signals():
        where = issue_targets(task, report, stacks, wanted, places, report_progress)
        if dry_run:
            return _print_plan(task, where)
        runs: list[ScriptRun] = []
        for run in with_known(run_warned(task, where, report, report_progress), catalogue):
            if not as_json and not comment and run.outcome.status is not Status.NOT_RUN:
                _show(run, runs)
            runs.append(run)
    if comment:
        return _print_comment(task, runs, shlex.join(["repros", "try", "--from-issue", "issue.md"]))
    return _finish(task, runs, as_json=as_json)


def _print_plan(task: Task, where: Targets) -> int:
    """Print the packages of each stack that the script needs, and what its environment would download."""
    out = console()
    for name in where.stacks:
        stack = where.known[name]
        show_text(out, format_plan(stack, find_downloads(stack), task.needs.packages, out.width))
    return AGREES


def _print_comment(task: Task, runs: list[ScriptRun], command: str) -> int:
    """Print the comment for the thread, and return the exit code of the runs."""
    _refuse_no_run(runs)
    echo(markdown.comment(task, runs, command, Redactor(MachineIdentity.of_this_machine())), nl=False)
    return _exit_code(runs)


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
    _refuse_no_run(runs)
    if as_json:
        echo_json(runs_to_json(task, runs))
    else:
        for run in runs:
            if run.outcome.status is Status.NOT_RUN:
                _show(run, runs)
    return _exit_code(runs)


def _refuse_no_run(runs: list[ScriptRun]) -> None:
    if all(run.outcome.status is Status.NOT_RUN for run in runs):
        notes = (*(run.outcome.note for run in runs), describe_missing(runs))
        raise ReprosError(f"the script ran nowhere: {'; '.join(filter(None, notes))}.")


def _exit_code(runs: list[ScriptRun]) -> int:
    return AGREES if all(run.is_clean for run in runs if run.outcome.status is not Status.NOT_RUN) else DISAGREES
