"""`repros try`: a stranger's script, or the code block of an issue, on chosen stacks, within walls."""  # noqa: N999 - the command's name

from __future__ import annotations

from pathlib import Path

import click

from repros.attempt.json_format import attempts_to_json
from repros.attempt.needs import read_needs
from repros.attempt.run import Attempt, Task, attempt
from repros.attempt.script import Script, read_issue, read_script
from repros.attempt.sight import Status
from repros.attempt.start import Limits, Options, find_walls, free_memory
from repros.attempt.text import format_attempt, format_warning
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.options import catalogue_option, example, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.streams import echo_json
from repros.cli.shared.where import choose_where
from repros.engine.own_folder import new_log_folder
from repros.errors import ReprosError
from repros.settings import Places
from repros.simulate import variables
from repros.simulated_gpus.memory_size import parse_size

_LOGS = Path(".repros/try.jsonl")
"""The logs go beside where results would be."""
_MOST_RANKS = 64


def _to_bytes(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        size = parse_size(text)
    except OverflowError:  # too large even for a float
        size = None
    if size is None:
        raise ReprosError(f"--{(option.name or '').replace('_', '-')} {text}: expected a size such as 24GB or 512MB.")
    return size


@click.command(
    epilog=example(
        "repros try train.py --ranks 2 -- --epochs 1",
        "repros try train.py --gpus 2 --stack 2024-09 --stack current",
        "repros try --from-issue issue.md",
    ),
)
@click.argument("words", nargs=-1, type=click.Path(), metavar="[SCRIPT] [-- ARGS]...")
@click.option(
    "--from-issue", "issue", type=click.Path(path_type=Path), metavar="FILE", help="Run an issue's code block."
)
@click.option("--block", type=int, metavar="N", help="The issue's N-th code block; else the longest with imports.")
@click.option(
    "--stack", "stacks", multiple=True, metavar="NAME", help="Stack to run on; repeatable; current if not given."
)
@click.option(
    "--ranks",
    type=click.IntRange(1, _MOST_RANKS),
    metavar="N",
    help="Start N ranks, as torchrun does.",
)
@click.option(
    "--own-ranks",
    type=click.IntRange(2, _MOST_RANKS),
    metavar="N",
    help="Expect the N ranks that SCRIPT starts itself: their hang is then seen before the time is up.",
)
@click.option("--gpus", type=int, metavar="N", help="Run it on N simulated GPUs, as `repros simulate` does.")
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="End it after so long; a hang of several ranks is seen sooner.",
)
@click.option(
    "--memory", callback=_to_bytes, metavar="SIZE", help="Memory of each process; else its share of what is free."
)
@click.option(
    "--file-size",
    callback=_to_bytes,
    default="1GB",
    show_default=True,
    metavar="SIZE",
    help="Size of each file that it writes.",
)
@click.option("--network", is_flag=True, help="Let it have the network.")
@click.option("--no-watch", is_flag=True, help="Leave out the checks of `repros watch`.")
@json_option
@catalogue_option
def try_script(
    words: tuple[str, ...],
    issue: Path | None,
    block: int | None,
    stacks: tuple[str, ...],
    ranks: int | None,
    own_ranks: int | None,
    gpus: int | None,
    timeout: float,
    memory: int | None,
    file_size: int,
    places: Places,
    *,
    network: bool,
    no_watch: bool,
    as_json: bool,
) -> int:
    """Run somebody else's script on chosen stacks and say what happens, with the documented failures in it.

    SCRIPT runs as it is, in a temporary folder, with the modules beside it that it imports, but with none of your
    tokens, no network and no sight of your files, where the system allows that. For each stack the command says how it
    ended: an exception with its signature, a hang with where each rank waits, or clean.

    What SCRIPT needs is read from its PEP 723 block and its imports; a stack that lacks some of it is left out, and the
    command says what is missing. Nothing is installed.

    Exit code: 0 if nothing known or wrong was seen on any stack, 1 if something was, 2 if the request cannot be met.
    """
    script, arguments = _find_script(words, issue, block)
    where = choose_where(stacks, None, places, default=("current",))
    options = _choose_options(ranks, own_ranks, gpus, watch=not no_watch)
    limits = Limits(timeout, memory or free_memory(options.ranks), file_size)
    task = Task(script, read_needs(script), arguments, options, limits, find_walls(network=network))
    catalogue, err = load_catalogue(places), console(stderr=True)
    with interrupt_on_signals():
        running = attempt(
            task,
            catalogue,
            where,
            new_log_folder(_LOGS),
            say=lambda line: show_text(err, line),
            begins=lambda: show_text(err, format_warning(task, err.width), "yellow"),
        )
        seen: list[Attempt] = []
        for each in running:
            if not as_json and each.sight.status is not Status.NOT_RUN:
                _show(each, seen)
            seen.append(each)
    return _finish(task, seen, as_json=as_json)


def _find_script(words: tuple[str, ...], issue: Path | None, block: int | None) -> tuple[Script, tuple[str, ...]]:
    """Return the script, and the words that it gets as arguments."""
    if issue is not None:
        return read_issue(issue, block), words
    if not words:
        raise click.UsageError("Missing argument 'SCRIPT', or --from-issue FILE.")
    if block is not None:
        raise click.UsageError("--block needs --from-issue FILE.")
    return read_script(Path(words[0])), words[1:]


def _choose_options(ranks: int | None, own_ranks: int | None, gpus: int | None, *, watch: bool) -> Options:
    if gpus is not None:
        variables(gpus, hide_gpus=True)  # refuses a wrong number
    if ranks and own_ranks:
        raise click.UsageError("--ranks and --own-ranks exclude each other: either starts the ranks.")
    return Options(ranks or own_ranks or 1, own_ranks is not None, gpus, watch)


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
        raise ReprosError(f"the script ran nowhere: {'; '.join(each.sight.note or '' for each in seen)}.")
    if as_json:
        echo_json(attempts_to_json(task, seen))
    else:
        for each in left_out:
            _show(each, seen)
    return AGREES if all(each.is_clean for each in seen if each not in left_out) else DISAGREES
