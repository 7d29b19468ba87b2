"""How one process ended, and its exception: the parts of an observation that logs have, too."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """How one process ended."""

    RETURNED = "returned"
    """The script ran to completion; interpreter shutdown does not count."""
    RAISED = "raised"
    """The script ended with an uncaught exception."""
    EXITED = "exited"
    """Non-zero exit code without an exception: `sys.exit(3)`, `os._exit(3)`."""
    SIGNALLED = "signalled"
    """Killed by a signal that the engine did not send."""
    TIMED_OUT = "timed out"
    """Still running at the deadline, or when a deadlock was detected; its stacks were taken."""
    STOPPED = "stopped"
    """A rank that the engine ended because it outlived the main process."""


@dataclass(frozen=True)
class Raised:
    """One exception of a chain."""

    type: str
    """Dotted class name."""
    bases: tuple[str, ...]
    """Dotted names of its base classes, nearest first."""
    message: str
    frames: tuple[str, ...]
    """`file:line function`, outermost first."""
    via: str | None = None
    """How the previous exception refers to this one: `cause`, `context`, `group`; None for the outermost."""

    @property
    def name(self) -> str:
        """The class name as Python prints it: builtins bare, the others dotted."""
        return self.type.removeprefix("builtins.")
