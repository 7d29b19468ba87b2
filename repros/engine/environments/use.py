"""Environments in use: shared locks against removal, and detection of lost ones."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from repros.engine.environments.store import (
    drop_folder,
    environment_folder,
    find_damage,
    is_complete,
    possible_folders,
    ready,
    used_file,
)
from repros.engine.environments.uv import ReportProgress
from repros.model.stack import Stack

MARKER = ".repros-made-for-the-matrix"
"""Marker of an environment that a run has made and may delete."""

_LOCK_TIMEOUT, _PAUSE = 1.0, 0.05
"""Seconds; a forked child holds its parent's locks until its exec."""


@contextlib.contextmanager
def hold(stacks: Iterable[Stack]) -> Iterator[None]:
    """Hold shared locks on the environments of stacks, existing or not; wait for a process that is deleting one.

    The kernel releases the lock when the process ends. In a read-only cache folder no lock is taken.
    """
    with contextlib.ExitStack() as held:
        for root in (root for stack in stacks for root in possible_folders(stack)):
            with contextlib.suppress(OSError):
                file = used_file(root)
                file.parent.mkdir(parents=True, exist_ok=True)
                fcntl.flock(held.enter_context(file.open("ab")), fcntl.LOCK_SH)
        yield


def drop_unless_held(stack: Stack) -> bool:
    """Delete a stack's environment unless a process holds it; return whether it was deleted."""
    return drop_folder_unless_held(environment_folder(stack))


def drop_folder_unless_held(root: Path) -> bool:
    """Delete an environment by its folder, as :func:`drop_unless_held`."""
    with contextlib.suppress(OSError), used_file(root).open("ab") as file:
        return _lock_exclusively(file) and drop_folder(root)
    return drop_folder(root)


def _lock_exclusively(file: BinaryIO) -> bool:
    until = time.monotonic() + _LOCK_TIMEOUT
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
    """Mark an environment that is made within the context, and delete it at the end unless `keep` is set.

    An environment that an earlier run kept is still marked; the next run without `keep` deletes it.
    """
    was_ready = ready(stack)
    try:
        yield
    finally:
        if ready(stack) and not was_ready:
            (environment_folder(stack) / MARKER).touch()
        drop_marked(stack, report_progress, keep=keep)


def drop_marked(stack: Stack, report_progress: ReportProgress, *, keep: bool) -> None:
    """Delete the environment of a stack, and report it, if this or an earlier run has made it."""
    if keep or not (environment_folder(stack) / MARKER).exists():
        return
    if drop_unless_held(stack):
        report_progress(f"dropped the environment of stack {stack.name}; uv keeps its wheels until 'uv cache clean'")
    else:
        report_progress(f"kept the environment of stack {stack.name}, which another process uses")


def find_loss(stack: Stack, python: Path) -> str | None:
    """Return what is missing in a stack's environment that was complete at the start of a run; None if nothing.

    Args:
        stack: the stack.
        python: the interpreter of the run; for the interpreter of another environment the result is None.
    """
    root = next((root for root in possible_folders(stack) if python.is_relative_to(root)), None)
    if root is None:
        return None
    return find_damage(root) if is_complete(root) else f"{root} was removed"


def write_no_bytecode() -> None:
    """Make all processes started from now on write no `__pycache__`.

    Otherwise Python writes bytecode into the user's environment at the first import of a module, and nothing may change
    in that environment. Existing bytecode is still used.
    """
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
