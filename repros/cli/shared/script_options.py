"""Options of the commands that run an untrusted script, and the request made of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from packaging.requirements import Requirement

from repros.cli.shared.options import weak_sandbox_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.where import choose_where, extend_stacks
from repros.engine import environments
from repros.engine.environment import Targets
from repros.engine.environments.uv import ReportProgress
from repros.engine.stacks import load_stacks
from repros.model.settings import CatalogueLocations
from repros.scripts.try_.reported_stack import reported_targets
from repros.scripts.try_.request import ScriptRequest
from repros.scripts.try_.run import ScriptRun, run_on_stacks
from repros.scripts.try_.task import Task
from repros.scripts.try_.text import format_warning
from repros.simulate import parse_memory, variables

F = TypeVar("F", bound=Callable[..., Any])
_MOST_RANKS = 64
ASKED = tuple(field.name for field in fields(ScriptRequest))
"""The parameters whose values are those of a request."""


def _to_bytes(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_memory(text, f"--{(option.name or '').replace('_', '-')}")


words_argument = click.argument("words", nargs=-1, type=click.Path(), metavar="[SCRIPT] [-- ARGS]...")
_ISSUE_FILE = click.option(
    "--from-issue", "issue", type=click.Path(path_type=Path), metavar="FILE", help="Run a code block of this issue."
)
_BLOCK = click.option(
    "--block", type=int, metavar="N", help="Run the issue's N-th code block. Default: the longest with imports."
)
_WAYS = (
    click.option(
        "--ranks", type=click.IntRange(1, _MOST_RANKS), metavar="N", help="Launch N ranks like torchrun (N=1 allowed)."
    ),
    click.option(
        "--own-ranks",
        type=click.IntRange(2, _MOST_RANKS),
        metavar="N",
        help="SCRIPT starts N ranks itself, by mp.spawn for example: a hang is then found before the timeout.",
    ),
    click.option("--gpus", type=int, metavar="N", help="Run on N simulated GPUs, like `repros simulate`."),
    click.option(
        "--timeout",
        type=click.FloatRange(1),
        default=120,
        show_default=True,
        metavar="SECONDS",
        help="Timeout in seconds; multi-rank hangs are detected earlier.",
    ),
    click.option(
        "--memory", callback=_to_bytes, metavar="SIZE", help="Memory limit per process (default: free memory / ranks)."
    ),
    click.option(
        "--file-size",
        callback=_to_bytes,
        default="1GB",
        show_default=True,
        metavar="SIZE",
        help="Size limit per written file.",
    ),
    click.option("--network", is_flag=True, help="Allow network access."),
    weak_sandbox_option,
)


def issue_options(command: F) -> F:
    """Add `--from-issue` and `--block`, which `running_options` takes."""
    return _ISSUE_FILE(_BLOCK(command))


watch_option = click.option(
    "--no-watch", "watch", is_flag=True, flag_value=False, default=True, help="Disable the checks of `repros watch`."
)
"""Add `--no-watch`, which `running_options` takes."""


def running_options(command: F) -> F:
    """Add the options for ranks, devices and limits of a script.

    The command gets them as its parameter `request`, with the words, the issue and the watch if it has these options.
    """

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        asked = {name: given.pop(name) for name in ASKED if name in given}
        return command(request=_make_request(asked), **given)

    for add in reversed(_WAYS):
        run = add(run)
    return cast("F", run)


def _make_request(asked: Mapping[str, Any]) -> ScriptRequest:
    """Return the request of a command line.

    Raises:
        ReprosError: the number of GPUs is out of range.
        click.UsageError: the options contradict each other, or no script is named.
    """
    request = ScriptRequest(**asked)
    if request.issue is None and "words" in asked and not request.words:
        raise click.UsageError("Missing argument 'SCRIPT', or --from-issue FILE.")
    if request.issue is None and request.block is not None:
        raise click.UsageError("--block needs --from-issue FILE.")
    if request.gpus is not None:
        variables(request.gpus, hide_gpus=True)  # refuses a wrong number
    if request.ranks and request.own_ranks:
        raise click.UsageError("--ranks and --own-ranks exclude each other: one of them launches the ranks.")
    return request


def ready_stacks(places: CatalogueLocations) -> tuple[str, ...]:
    """Return the stacks with an environment, `current` first, then from newest to oldest."""
    names = [name for name, stack in load_stacks(places).items() if environments.ready(stack)]
    return ("current", *sorted((name for name in names if name != "current"), reverse=True))


def choose_targets(
    task: Task,
    stacks: tuple[str, ...],
    wanted: tuple[Requirement, ...],
    places: CatalogueLocations,
    report_progress: ReportProgress,
) -> Targets:
    """Return the stacks to run on: for an issue its own releases and `current`, unless stacks are named."""
    where = extend_stacks(choose_where(stacks, None, places, default=("current",)), wanted, report_progress)
    return where if stacks else reported_targets(task, where, wanted, report_progress)


def try_on(task: Task, choose: Callable[[ReportProgress], Targets]) -> list[ScriptRun]:
    """Run a script on stacks and return the runs; show the sandbox and each outcome on stderr.

    Args:
        task: the script, and how to run it.
        choose: returns the stacks, and receives the callback for progress.
    """
    err = console(stderr=True)
    report_progress = partial(show_text, err, style="dim")
    runs = []
    with interrupt_on_signals():
        for run in run_on_stacks(task, choose(report_progress), None, report_progress, warn):
            runs.append(run)
            outcome = run.outcome
            show_text(err, f"{run.stack}: {outcome.signature or outcome.note or outcome.status.value}")
    return runs


def warn(task: Task) -> None:
    """Show on stderr what confines a script, and what does not."""
    err = console(stderr=True)
    show_text(err, format_warning(task, err.width), "yellow")
