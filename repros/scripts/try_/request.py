"""A request to run a script: what the command line says of it, and the task made of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from repros.diagnose.issue import Issue
from repros.scripts.try_.sandbox import Limits, Sandbox, find_sandbox, free_memory
from repros.scripts.try_.script import read_issue, read_script
from repros.scripts.try_.task import Program, Task, TaskOptions


@dataclass(frozen=True)
class ScriptRequest:
    """A script by its file or its issue, and how it is to run, in seconds and bytes."""

    words: tuple[str, ...] = ()
    """The script's file and arguments; for the script of an issue, its arguments."""
    issue: Path | None = None
    block: int | None = None
    """The number of the script among the issue's code blocks; None for the longest with imports."""
    ranks: int | None = None
    """Number of ranks to launch."""
    own_ranks: int | None = None
    """Number of ranks that the script launches itself."""
    gpus: int | None = None
    """Number of simulated GPUs."""
    timeout: float = 120
    memory: int | None = None
    """Limit per process; None divides the free memory by the ranks."""
    file_size: int = 2**30
    network: bool = False
    weak_sandbox: bool = False
    """Whether the script may run although this system cannot build the whole sandbox."""
    watch: bool = True
    """Whether to run the checks of `repros watch`."""


def read_task(request: ScriptRequest, at_once: int = 1) -> Task:
    """Read the script that a request names, and return the task.

    Args:
        request: the script's file or issue, and how it is to run.
        at_once: number of such scripts that share the free memory.

    Raises:
        ReprosError: there is no such script, or it is not valid Python.
    """
    terms = _choose_terms(request, at_once)
    if request.issue is None:
        file, *arguments = request.words
        return Task(read_script(Path(file)), tuple(arguments), *terms)
    script, issue = read_issue(request.issue, request.block)
    return Task(script, request.words, *terms, issue)


def make_task(request: ScriptRequest, program: Program, issue: Issue | None = None, at_once: int = 1) -> Task:
    """Return the task of a program that is read already, which runs as a request says."""
    return Task(program, (), *_choose_terms(request, at_once), issue)


def _choose_terms(request: ScriptRequest, at_once: int) -> tuple[TaskOptions, Limits, Sandbox]:
    ranks = request.ranks or request.own_ranks or 1
    is_own, is_launched = request.own_ranks is not None, request.ranks is not None
    options = TaskOptions(ranks, is_own, request.gpus, request.watch, is_launched)
    limits = Limits(request.timeout, request.memory or free_memory(ranks * at_once), request.file_size)
    return options, limits, find_sandbox(network=request.network)
