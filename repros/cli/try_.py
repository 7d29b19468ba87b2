"""`repros try`: an untrusted script, or the code block of an issue, in a sandbox on chosen stacks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
from packaging.requirements import Requirement

from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, example, json_option
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
from repros.scripts.try_.json_format import attempts_to_json
from repros.scripts.try_.run import Attempt, Task, attempt
from repros.scripts.try_.sight import Status
from repros.scripts.try_.text import describe_way_out, format_attempt, format_warning


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
        attempts = attempt(
            task,
            catalogue,
            where,
            new_log_folder(LOGS),
            report_progress=report_progress,
            begins=lambda: show_text(err, format_warning(task, err.width), "yellow"),
        )
        seen: list[Attempt] = []
        for each in attempts:
            if not as_json and each.sight.status is not Status.NOT_RUN:
                _show(each, seen)
            seen.append(each)
    return _finish(task, seen, as_json=as_json)


def _show(each: Attempt, before: list[Attempt]) -> None:
    """Print the outcome on a stack, after those on others."""
    out = console()
    if before:
        show_text(out, "")
    show_text(out, format_attempt(each, out.width))


def _finish(task: Task, seen: list[Attempt], *, as_json: bool) -> int:
    """Print the stacks on which the script did not run, or all outcomes as JSON, and return the exit code.

    Raises:
        ReprosError: the script ran nowhere.
    """
    left_out = [each for each in seen if each.sight.status is Status.NOT_RUN]
    if len(left_out) == len(seen):
        notes = (*(each.sight.note for each in seen), describe_way_out(seen))
        raise ReprosError(f"the script ran nowhere: {'; '.join(filter(None, notes))}.")
    if as_json:
        echo_json(attempts_to_json(task, seen))
    else:
        for each in left_out:
            _show(each, seen)
    return AGREES if all(each.is_clean for each in seen if each not in left_out) else DISAGREES
