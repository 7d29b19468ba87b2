"""`repros try`: an untrusted script, or the code block of an issue, in a sandbox on chosen stacks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import tee
from typing import Any

import click
from packaging.requirements import Requirement

from repros.advise.report.redact import redact_machine
from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, json_option, stacks_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.script_options import (
    choose_targets,
    issue_options,
    running_options,
    warn,
    watch_option,
    words_argument,
)
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.weak_sandbox import accept_sandbox
from repros.cli.shared.where import with_option
from repros.model.settings import CatalogueLocations
from repros.scripts.try_ import markdown
from repros.scripts.try_.json_format import runs_to_json
from repros.scripts.try_.request import ScriptRequest, read_task
from repros.scripts.try_.run import run_on_stacks
from repros.scripts.try_.text import format_plan, format_runs, refuse_no_run
from repros.text.control import dump_json


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
@watch_option
@json_option
@catalogue_option
def try_script(
    request: ScriptRequest,
    stacks: tuple[str, ...],
    wanted: tuple[Requirement, ...],
    places: CatalogueLocations,
    *,
    dry_run: bool,
    comment: bool,
    as_json: bool,
) -> int:
    """Run an untrusted script in a sandbox on chosen stacks, and report the outcome and documented failures.

    SCRIPT runs unmodified in a temporary folder, with the neighbouring modules that it imports. It has no access to
    your tokens, the network or your files, where the system supports that. The outcome on each stack is an exception
    with its signature, a hang (with each rank's wait location), or a clean exit.

    Dependencies are read from the PEP 723 block and the imports of SCRIPT. A stack that lacks one is skipped, and
    the missing packages are listed. No package is added to a stack without --with, which changes packages of the
    stack: it prints the changes first and caches the environment.

    With --from-issue and without --stack, it runs on the releases that the issue states, on the nearest stack, and on
    current, and each run is compared with the exception, the output or the hang that the issue reports: `as reported`,
    `not as reported`, or `not compared` where the issue or the run does not decide it.

    Exit code: 0 if every run exits cleanly without a known failure, 1 otherwise, 2 if the request cannot be met.
    """
    task = read_task(request)
    if comment and (task.issue is None or as_json):
        raise click.UsageError("--comment needs --from-issue FILE, and excludes --json.")
    if not dry_run:
        accept_sandbox(task.sandbox, is_accepted=request.weak_sandbox)
    catalogue, report_progress = load_catalogue(places), partial(show_text, console(stderr=True))
    out = console()
    with interrupt_on_signals():
        where = choose_targets(task, stacks, wanted, places, report_progress)
        shown, ran = tee(refuse_no_run(run_on_stacks(task, where, catalogue, report_progress, warn)))
        if dry_run:
            pages: Iterable[Any] = format_plan(task, where)
        elif as_json:
            pages = [runs_to_json(task, shown)]
        elif comment:
            pages = [markdown.comment(task, [*shown], "repros try --from-issue issue.md")]
        else:
            pages = format_runs(shown)
        for number, page in enumerate(pages):
            if number and not dry_run:
                show_text(out, "")
            text = (
                redact_machine(page) if isinstance(page, str) else dump_json(page) if isinstance(page, dict) else page
            )
            show_text(out, text)
    return AGREES if dry_run or all(run.is_clean for run in ran if run.observed) else DISAGREES
