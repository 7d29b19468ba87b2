"""A task of `repros try`, `reduce` and `bisect`: a program of the user, with its arguments, ranks and limits."""

from __future__ import annotations

from dataclasses import dataclass

from repros.diagnose.issue import Issue
from repros.scripts.try_.command import Command
from repros.scripts.try_.needs import Needs
from repros.scripts.try_.sandbox import Limits, Sandbox
from repros.scripts.try_.script import Script

Program = Script | Command
"""A program that is copied into a folder of its own for each run."""


@dataclass(frozen=True)
class TaskOptions:
    """How a program runs on a stack."""

    ranks: int = 1
    own: bool = False
    """Whether the program starts its ranks itself."""
    gpus: int | None = None
    """Number of simulated GPUs; None for none."""
    watch: bool = True
    """Whether the checks of `repros watch` run in it."""
    launched: bool = False
    """Whether a single rank gets the variables of torchrun, too; several ranks do unless the program starts them."""


@dataclass(frozen=True)
class Task:
    """A program to run, and how."""

    script: Program
    arguments: tuple[str, ...]
    options: TaskOptions
    limits: Limits
    sandbox: Sandbox
    issue: Issue | None = None
    """The issue with which its runs are compared; None for none."""

    @property
    def needs(self) -> Needs:
        """The packages that the program needs."""
        return self.script.needs

    @property
    def python_script(self) -> Script:
        """The program, which must be a script rather than a command."""
        assert isinstance(self.script, Script), "a command has no source"
        return self.script
