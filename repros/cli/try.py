"""`repros try`: a stranger's script, or the code block of an issue, on chosen stacks, within walls."""  # noqa: N999 - the command's name

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
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.stranger import LOGS, find_script, issue_options, make_task, running_options, words_argument
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
@click.option(
    "--stack", "stacks", multiple=True, metavar="NAME", help="Stack to run on; repeatable; current if not given."
)
@with_option
@running_options
@click.option("--no-watch", is_flag=True, help="Leave out the checks of `repros watch`.")
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
    **way: Any,
) -> int:
    """Run somebody else's script on chosen stacks and say what happens, with the documented failures in it.

    SCRIPT runs as it is, in a temporary folder, with the modules beside it that it imports, but with none of your
    tokens, no network and no sight of your files, where the system allows that. For each stack the command says how it
    ended: an exception with its signature, a hang with where each rank waits, or clean.

    What SCRIPT needs is read from its PEP 723 block and its imports; a stack that lacks some of it is left out, and the
    command says what is missing. Nothing is installed without --with, which makes an environment of the stack's
    versions with others in their place: it says first which, and the next time it is there.

    Exit code: 0 if nothing known or wrong was seen on any stack, 1 if something was, 2 if the request cannot be met.
    """
    script, arguments = find_script(words, issue, block)
    where = choose_where(stacks, None, places, default=("current",))
    task = make_task(script, arguments, watch=not no_watch, **way)
    catalogue, err = load_catalogue(places), console(stderr=True)
    report_progress = partial(show_text, err)
    with interrupt_on_signals():
        where = extend_stacks(where, wanted, report_progress)
        running = attempt(
            task,
            catalogue,
            where,
            new_log_folder(LOGS),
            report_progress=report_progress,
            begins=lambda: show_text(err, format_warning(task, err.width), "yellow"),
        )
        seen: list[Attempt] = []
        for each in running:
            if not as_json and each.sight.status is not Status.NOT_RUN:
                _show(each, seen)
            seen.append(each)
    return _finish(task, seen, as_json=as_json)


def _show(each: Attempt, before: list[Attempt]) -> None:
    """Show what was seen on a stack, below what was seen on others."""
    out = console()
    if before:
        show_text(out, "")
    show_text(out, format_attempt(each, out.width))


def _finish(task: Task, seen: list[Attempt], *, as_json: bool) -> int:
    """Show on which stacks the script did not run, or all as JSON, and return the exit code.

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
