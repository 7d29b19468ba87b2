"""Environments in use: no other process removes one that is held, and one that is gone all the same is noticed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from repros.engine.environments.store import drop, find_damage, place, ready
from repros.engine.environments.uv import ReportProgress
from repros.model.stack import Stack

MARKER = ".repros-made-for-the-matrix"
"""A file in an environment that a run has made, and may drop."""

_PATIENCE, _PAUSE = 1.0, 0.05
"""Seconds: a child that was started a moment ago has the parent's locks until it runs its own program."""


@contextlib.contextmanager
def hold(stacks: Iterable[Stack]) -> Iterator[None]:
    """Hold the environments of stacks, whether they exist yet or not; wait for a process that is removing one.

    The lock ends with the process however that ends. Where no lock can be had, such as in a read-only cache folder,
    nothing is held.
    """
    with contextlib.ExitStack() as held:
        for stack in stacks:
            with contextlib.suppress(OSError):
                file = _lock_file(stack)
                file.parent.mkdir(parents=True, exist_ok=True)
                fcntl.flock(held.enter_context(file.open("ab")), fcntl.LOCK_SH)
        yield


def drop_unless_held(stack: Stack) -> bool:
    """Remove a stack's environment unless a process holds it; return whether it was removed."""
    with contextlib.suppress(OSError), _lock_file(stack).open("ab") as file:
        return _lock_alone(file) and drop(stack)
    return drop(stack)


def _lock_alone(file: BinaryIO) -> bool:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE)
        else:
            return True


@contextlib.contextmanager
def drop_afterwards(stack: Stack, report_progress: ReportProgress, *, keep: bool) -> Iterator[None]:
    """Mark an environment that the block makes, and drop it at the end unless it is to be kept.

    An environment kept by an earlier run still has the marker; the next run that does not keep it drops it.
    """
    was_ready = ready(stack)
    try:
        yield
    finally:
        if ready(stack) and not was_ready:
            (place(stack) / MARKER).touch()
        drop_marked(stack, report_progress, keep=keep)


def drop_marked(stack: Stack, report_progress: ReportProgress, *, keep: bool) -> None:
    """Drop the environment of a stack if a run has made it, this one or one with `keep`, and say so."""
    if keep or not (place(stack) / MARKER).exists():
        return
    if drop_unless_held(stack):
        report_progress(f"dropped the environment of stack {stack.name}; uv keeps its wheels until 'uv cache clean'")
    else:
        report_progress(f"kept the environment of stack {stack.name}, which another process uses")


def find_loss(stack: Stack, python: Path) -> str | None:
    """Return what a stack's environment, which was complete when a run began, has lost since; None if nothing.

    Args:
        stack: the stack.
        python: the interpreter of the run. If that is another environment's, nothing is known of it.
    """
    if not python.is_relative_to(place(stack)):
        return None
    return find_damage(place(stack)) if ready(stack) else f"{place(stack)} was removed"


def _lock_file(stack: Stack) -> Path:
    return place(stack).with_name(f"{place(stack).name}.used")


def write_no_bytecode() -> None:
    """Let the processes that are started from now on write no `__pycache__`, whatever the user has set.

    Python would write one beside each module that it imports for the first time: into the user's environment, in which
    nothing may change. What is compiled there already is still read.
    """
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
