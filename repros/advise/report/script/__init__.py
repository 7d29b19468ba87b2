"""A report about an untrusted script: its source, its outcome on each stack, and the environments."""

from __future__ import annotations

from dataclasses import dataclass

from repros.advise.report.build import ProbedEnvironment
from repros.model import Device


@dataclass(frozen=True)
class ScriptRunSummary(ProbedEnvironment):
    """A script's run on a stack, and the stack's environment."""

    stack: str
    ending: str
    """`exception in rank 0, rank 1`, `hang`, `clean`, ..."""
    signature: str | None
    """The normalised failure; None if there is none."""
    places: tuple[str, ...]
    """The innermost calls of an exception, or the wait location of each rank."""
    traceback: str
    """The last traceback in the logs; empty without one."""
    printed: tuple[str, ...] = ()
    """The end of the output after a clean exit."""


@dataclass(frozen=True)
class ScriptReport:
    """A script and its runs, already redacted."""

    name: str
    source: str
    command: str
    """The command that starts it without this project: `torchrun --nproc-per-node 2 train.py`."""
    device: Device
    runs: tuple[ScriptRunSummary, ...]
    packages: tuple[str, ...]
    """The script's dependencies."""

    @property
    def failed(self) -> ScriptRunSummary | None:
        """The first run with a failure."""
        return next((run for run in self.runs if run.signature is not None), None)
