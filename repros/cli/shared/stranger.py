"""What the commands that run somebody else's script have in common: its options, and the task that they describe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from repros.cli.shared.output import console, show_text
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.where import choose_where
from repros.engine import environments
from repros.engine.own_folder import new_log_folder
from repros.engine.stacks import load_stacks
from repros.model.settings import CatalogueLocations
from repros.scripts.try_.needs import Needs, read_needs
from repros.scripts.try_.run import ScriptRun, run_on_stacks
from repros.scripts.try_.sandbox import Limits, find_sandbox, free_memory
from repros.scripts.try_.script import Script, read_issue, read_script
from repros.scripts.try_.task import Program, Task, TaskOptions
from repros.scripts.try_.text import format_warning
from repros.simulate import parse_memory, variables

F = TypeVar("F", bound=Callable[..., Any])
LOGS = Path(".repros/try.jsonl")
"""The logs go beside where results would be."""
_MOST_RANKS = 64


def _to_bytes(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_memory(text, f"--{(option.name or '').replace('_', '-')}")


words_argument = click.argument("words", nargs=-1, type=click.Path(), metavar="[SCRIPT] [-- ARGS]...")
_ISSUE = (
    click.option(
        "--from-issue", "issue", type=click.Path(path_type=Path), metavar="FILE", help="Run an issue's code block."
    ),
    click.option("--block", type=int, metavar="N", help="The issue's N-th code block; else the longest with imports."),
)
_WAYS = (
    click.option(
        "--ranks",
        type=click.IntRange(1, _MOST_RANKS),
        metavar="N",
        help="Start N ranks as torchrun does, also a single one.",
    ),
    click.option(
        "--own-ranks",
        type=click.IntRange(2, _MOST_RANKS),
        metavar="N",
        help="Expect the N ranks that SCRIPT starts itself: their hang is then seen before the time is up.",
    ),
    click.option("--gpus", type=int, metavar="N", help="Run it on N simulated GPUs, as `repros simulate` does."),
    click.option(
        "--timeout",
        type=click.FloatRange(1),
        default=120,
        show_default=True,
        metavar="SECONDS",
        help="End it after so long; a hang of several ranks is seen sooner.",
    ),
    click.option(
        "--memory", callback=_to_bytes, metavar="SIZE", help="Memory of each process; else its share of what is free."
    ),
    click.option(
        "--file-size",
        callback=_to_bytes,
        default="1GB",
        show_default=True,
        metavar="SIZE",
        help="Size of each file that it writes.",
    ),
    click.option("--network", is_flag=True, help="Let it have the network."),
)


def issue_options(command: F) -> F:
    """Add `--from-issue` and `--block`."""
    for add in reversed(_ISSUE):
        command = add(command)
    return command


def running_options(command: F) -> F:
    """Add the ranks and devices of a script, and its limits; the command hands their values to `make_task`."""
    for add in reversed(_WAYS):
        command = add(command)
    return command


def find_script(words: tuple[str, ...], issue: Path | None, block: int | None) -> tuple[Script, tuple[str, ...]]:
    """Return the script, and the words that it gets as arguments."""
    if issue is not None:
        return read_issue(issue, block), words
    if not words:
        raise click.UsageError("Missing argument 'SCRIPT', or --from-issue FILE.")
    if block is not None:
        raise click.UsageError("--block needs --from-issue FILE.")
    return read_script(Path(words[0])), words[1:]


def make_task(
    script: Program,
    arguments: tuple[str, ...] = (),
    *,
    ranks: int | None = None,
    own_ranks: int | None = None,
    gpus: int | None = None,
    timeout: float = 120,
    memory: int | None = None,
    file_size: int = 2**30,
    network: bool = False,
    watch: bool = True,
    at_once: int = 1,
) -> Task:
    """Return the task that the options describe.

    Args:
        script: the script, or a command, whose needs are not known.
        arguments: its own arguments.
        ranks: how many to start.
        own_ranks: how many it starts itself.
        gpus: simulated GPUs.
        timeout: seconds that it gets.
        memory: bytes of each process; None for its share of what is free.
        file_size: bytes of each file.
        network: whether it has the network.
        watch: whether the checks of `repros watch` look at it.
        at_once: how many such scripts share the free memory.

    Raises:
        ReprosError: there cannot be so many GPUs, or the script's PEP 723 block is damaged.
        click.UsageError: both kinds of ranks are given.
    """
    if gpus is not None:
        variables(gpus, hide_gpus=True)  # refuses a wrong number
    if ranks and own_ranks:
        raise click.UsageError("--ranks and --own-ranks exclude each other: either starts the ranks.")
    options = TaskOptions(ranks or own_ranks or 1, own_ranks is not None, gpus, watch, ranks is not None)
    limits = Limits(timeout, memory or free_memory(options.ranks * at_once), file_size)
    needs = read_needs(script) if isinstance(script, Script) else Needs(())
    return Task(script, needs, arguments, options, limits, find_sandbox(network=network))


def ready_stacks(places: CatalogueLocations) -> tuple[str, ...]:
    """Return the stacks whose environments have been made, `current` first, then the newer ones first."""
    names = [name for name, stack in load_stacks(places).items() if environments.ready(stack)]
    return ("current", *sorted((name for name in names if name != "current"), reverse=True))


def try_on(task: Task, stacks: tuple[str, ...], places: CatalogueLocations) -> list[ScriptRun]:
    """Run a script on stacks and return the runs; show the sandbox and each outcome on stderr."""
    err = console(stderr=True)
    where = choose_where(stacks, None, places)
    runs = []
    with interrupt_on_signals():
        running = run_on_stacks(
            task,
            where,
            new_log_folder(LOGS),
            report_progress=lambda line: show_text(err, line, "dim"),
            on_start=lambda: show_text(err, format_warning(task, err.width), "yellow"),
        )
        for run in running:
            runs.append(run)
            outcome = run.outcome
            show_text(err, f"{run.stack}: {outcome.signature or outcome.note or outcome.status.value}")
    return runs
