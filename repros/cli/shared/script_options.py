"""Options of the commands that run an untrusted script, and the task made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from packaging.requirements import Requirement

from repros.cli.shared.output import console, show_text
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.where import choose_where, extend_stacks
from repros.diagnose.issue import Issue
from repros.engine import environments
from repros.engine.environment import Targets
from repros.engine.environments.uv import ReportProgress
from repros.engine.own_folder import new_log_folder
from repros.engine.stacks import load_stacks
from repros.model.settings import CatalogueLocations
from repros.scripts.try_.needs import Needs, read_needs
from repros.scripts.try_.reported_stack import find_reported_stack
from repros.scripts.try_.run import ScriptRun, run_on_stacks, with_comparison
from repros.scripts.try_.sandbox import Limits, find_sandbox, free_memory
from repros.scripts.try_.script import Script, read_issue, read_script
from repros.scripts.try_.task import Program, Task, TaskOptions
from repros.scripts.try_.text import format_warning
from repros.simulate import parse_memory, variables

F = TypeVar("F", bound=Callable[..., Any])
LOGS = Path(".repros/try.jsonl")
"""Path of a results file, next to which the logs are written."""
_MOST_RANKS = 64


def _to_bytes(_: click.Context, option: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_memory(text, f"--{(option.name or '').replace('_', '-')}")


words_argument = click.argument("words", nargs=-1, type=click.Path(), metavar="[SCRIPT] [-- ARGS]...")
_ISSUE = (
    click.option(
        "--from-issue", "issue", type=click.Path(path_type=Path), metavar="FILE", help="Run a code block of this issue."
    ),
    click.option(
        "--block", type=int, metavar="N", help="Run the issue's N-th code block. Default: the longest with imports."
    ),
)
_WAYS = (
    click.option(
        "--ranks",
        type=click.IntRange(1, _MOST_RANKS),
        metavar="N",
        help="Launch N ranks like torchrun (N=1 allowed).",
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
)


def issue_options(command: F) -> F:
    """Add `--from-issue` and `--block`."""
    for add in reversed(_ISSUE):
        command = add(command)
    return command


def running_options(command: F) -> F:
    """Add the options for ranks, devices and limits of a script; the command passes their values to `make_task`."""
    for add in reversed(_WAYS):
        command = add(command)
    return command


def find_script(words: tuple[str, ...], issue: Path | None, block: int | None) -> tuple[Script, tuple[str, ...]]:
    """Return the script and its arguments."""
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
    """Return the task made of the options.

    Args:
        script: the script, or a command, whose dependencies are unknown.
        arguments: the script's arguments.
        ranks: number of ranks to launch.
        own_ranks: number of ranks that the script launches itself.
        gpus: number of simulated GPUs.
        timeout: in seconds.
        memory: limit per process in bytes; None divides the free memory by the ranks.
        file_size: limit per file in bytes.
        network: whether to allow network access.
        watch: whether to run the checks of `repros watch`.
        at_once: number of such scripts that share the free memory.

    Raises:
        ReprosError: the number of GPUs is out of range, or the script's PEP 723 block is invalid.
        click.UsageError: both `ranks` and `own_ranks` are given.
    """
    if gpus is not None:
        variables(gpus, hide_gpus=True)  # refuses a wrong number
    if ranks and own_ranks:
        raise click.UsageError("--ranks and --own-ranks exclude each other: one of them launches the ranks.")
    options = TaskOptions(ranks or own_ranks or 1, own_ranks is not None, gpus, watch, ranks is not None)
    limits = Limits(timeout, memory or free_memory(options.ranks * at_once), file_size)
    needs = read_needs(script) if isinstance(script, Script) else Needs(())
    return Task(script, needs, arguments, options, limits, find_sandbox(network=network))


def ready_stacks(places: CatalogueLocations) -> tuple[str, ...]:
    """Return the stacks with an environment, `current` first, then from newest to oldest."""
    names = [name for name, stack in load_stacks(places).items() if environments.ready(stack)]
    return ("current", *sorted((name for name in names if name != "current"), reverse=True))


def issue_targets(
    task: Task,
    report: Issue | None,
    stacks: tuple[str, ...],
    wanted: tuple[Requirement, ...],
    places: CatalogueLocations,
    report_progress: ReportProgress,
) -> Targets:
    """Return the stacks to run on: for an issue its own releases and `current`, unless stacks are named."""
    where = extend_stacks(choose_where(stacks, None, places, default=("current",)), wanted, report_progress)
    if report is None or stacks:
        return where
    found = find_reported_stack(report.versions, task.needs.packages, where.known, report_progress, wanted)
    if found is None:
        show_text(console(stderr=True), "the issue states no release of a package that the stacks have", "yellow")
        return where
    for note in found.notes:
        report_progress(f"not as in the issue: {note}")
    names = dict.fromkeys((found.stack.name, *where.stacks))
    return replace(where, stacks=tuple(names), known={**where.known, found.stack.name: found.stack})


def try_on(task: Task, choose: Callable[[ReportProgress], Targets], report: Issue | None = None) -> list[ScriptRun]:
    """Run a script on stacks and return the runs; show the sandbox and each outcome on stderr.

    Args:
        task: the script, and how to run it.
        choose: returns the stacks, and receives the callback for progress.
        report: the issue with which the runs are compared; None for none.
    """
    err = console(stderr=True)
    report_progress = partial(show_text, err, style="dim")
    runs = []
    with interrupt_on_signals():
        for run in run_warned(task, choose(report_progress), report, report_progress):
            runs.append(run)
            outcome = run.outcome
            show_text(err, f"{run.stack}: {outcome.signature or outcome.note or outcome.status.value}")
    return runs


def run_warned(
    task: Task, where: Targets, report: Issue | None, report_progress: ReportProgress
) -> Iterator[ScriptRun]:
    """Run a script on stacks and yield the runs, compared with an issue; before the first, show the sandbox on stderr.

    Raises:
        ReprosError: there is no such stack.
    """
    err = console(stderr=True)
    started = run_on_stacks(
        task,
        where,
        new_log_folder(LOGS),
        report_progress=report_progress,
        on_start=lambda: show_text(err, format_warning(task, err.width), "yellow"),
    )
    return with_comparison(started, report)
