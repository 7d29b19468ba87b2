"""`repros bisect SCRIPT` and `repros bisect -- COMMAND`: the release at which a program's outcome changes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import psutil
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.output import console, show_text
from repros.cli.shared.script_options import warn
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.cli.shared.streams import echo_json
from repros.cli.shared.weak_sandbox import accept_sandbox
from repros.engine.environments.nightlies import more_index
from repros.engine.inventory import usable_cores
from repros.engine.stacks import stack
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.scripts.bisect.pool import JOB_MEMORY
from repros.scripts.bisect.script.bisection import run_script_bisection
from repros.scripts.bisect.script.json_format import script_bisection_to_json
from repros.scripts.bisect.script.patterns import parse_patterns
from repros.scripts.bisect.script.question import ScriptQuestion, ask_script
from repros.scripts.bisect.script.text import describe_script_steps, format_script_bisection
from repros.scripts.try_.command import read_command
from repros.scripts.try_.needs import package_of
from repros.scripts.try_.request import ScriptRequest, make_task, read_task
from repros.scripts.try_.task import Task


def bisect_script(
    request: ScriptRequest,
    script: str | None,
    after: list[str] | None,
    places: CatalogueLocations,
    *,
    package: str | None,
    good: str | None,
    bad: str | None,
    tolerance: float | None,
    oldest: Version | None,
    newest: Version | None,
    stack_name: str | None,
    runs: int,
    index: str | None,
    jobs: int | None,
    every: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Bisect a script, or the command after `--`. The arguments are the command's options by name.

    Returns:
        The exit code.

    Raises:
        ReprosError: the request cannot be met.
    """
    patterns = parse_patterns(good, bad, tolerance)
    jobs = jobs or _choose_jobs(request.ranks or request.own_ranks or 1)
    task = _read_task(request, script, after, jobs)
    chosen = stack(stack_name or "current", places)
    question = ask_script(task, patterns, chosen, _choose_package(task, package), oldest, newest, runs, index)
    if dry_run:
        for line in describe_script_steps(question):
            show_text(console(), line)
        return AGREES
    accept_sandbox(task.sandbox, is_accepted=request.weak_sandbox)
    with more_index(index):
        return _answer(question, jobs, every=every, as_json=as_json)


def _read_task(request: ScriptRequest, script: str | None, after: list[str] | None, jobs: int) -> Task:
    """Return the task of the issue of a request, of a script, or of the command after `--`."""
    if request.issue is not None and script is not None:
        raise click.UsageError("SCRIPT and --from-issue exclude each other.")
    if request.issue is None and script is None:
        return make_task(request, read_command(after or [], Path.cwd()), at_once=jobs)
    return read_task(replace(request, words=(*([script] if script else []), *(after or ()))), at_once=jobs)


def _choose_package(task: Task, given: str | None) -> str:
    """Return the package to bisect.

    Raises:
        click.UsageError: none is given.
    """
    if given:
        return str(canonicalize_name(given))
    known = ", ".join(dict.fromkeys(map(package_of, task.needs.modules)))
    which = f"; {task.script.origin} imports {known}" if known else ""
    raise click.UsageError(f"Missing option '--package', the package to bisect{which}.")


def _choose_jobs(ranks: int) -> int:
    """Return how many releases to test in parallel, each with its ranks."""
    return max(1, min(usable_cores(), psutil.virtual_memory().available // JOB_MEMORY) // ranks)


def _answer(question: ScriptQuestion, jobs: int, *, every: bool, as_json: bool) -> int:
    err = console(stderr=True)
    warn(question.task)
    for line in describe_script_steps(question):
        show_text(err, line, "dim")
    try:
        with interrupt_on_signals():
            report_progress = partial(show_text, err)
            found = run_script_bisection(question, question.folder, report_progress, every=every, jobs=jobs)
    except KeyboardInterrupt as interruption:
        show_text(err, "interrupted; the results so far are cached", "yellow")
        return interruption_exit_code(interruption)
    except OSError as error:
        raise ReprosError(f"{error.filename or question.folder} cannot be used ({error.strerror}).") from error
    if as_json:
        echo_json(script_bisection_to_json(found), indent=1)
    else:
        out = console()
        show_text(out, format_script_bisection(found, out.width))
    return DISAGREES if found.change is None else AGREES
