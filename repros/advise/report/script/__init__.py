"""A report about a script that is no repro: the script, how it ends on each stack, and what it ran with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from repros.model import Device


@dataclass(frozen=True)
class ScriptRunSummary:
    """A script's run on a stack."""

    stack: str
    ending: str
    """`exception in rank 0, rank 1`, `hang`, `clean`, ..."""
    signature: str | None
    """What failed, normalised; None if nothing did."""
    places: tuple[str, ...]
    """The innermost calls of an exception, or where each rank waits."""
    traceback: str
    """The last traceback in the logs; empty without one."""
    python: str
    platform: str
    versions: Mapping[str, str]
    collect_env: str
    """The output of `torch.utils.collect_env`."""
    collect_env_problem: str | None
    """Why that output is empty."""


@dataclass(frozen=True)
class ScriptReport:
    """A script and what was seen of it, redacted already."""

    name: str
    source: str
    command: str
    """What starts it, without this project: `torchrun --nproc-per-node 2 train.py`."""
    device: Device
    runs: tuple[ScriptRunSummary, ...]
    packages: tuple[str, ...]
    """What the script needs."""

    @property
    def failed(self) -> ScriptRunSummary | None:
        """The first run with a failure."""
        return next((run for run in self.runs if run.signature is not None), None)
