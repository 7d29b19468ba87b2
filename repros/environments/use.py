"""Environments in use: no other process removes one that is held, and one that is gone all the same is noticed."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterable, Iterator
from pathlib import Path

from repros.environments.integrity import find_damage
from repros.environments.store import drop, place, ready
from repros.model.stack import Stack


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
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return drop(stack)
    return drop(stack)


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
