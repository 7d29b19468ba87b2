"""The frozen values that all other packages exchange."""

from __future__ import annotations

from repros.model.cell import Cell, Expectation, Unavailable, cell_label
from repros.model.environment import Environment
from repros.model.observation import Ending, Launch, Observation, Process, ProcessRole, Raised
from repros.model.repro import Device, End, ExpectedOutcome, FailureKind, Repro, Role, Signature, Upstream, Variant
from repros.model.stack import Stack
from repros.model.verdict import Category, CellResult, Repeats, Verdict

__all__ = [
    "Category",
    "Cell",
    "CellResult",
    "Device",
    "End",
    "Ending",
    "Environment",
    "Expectation",
    "ExpectedOutcome",
    "FailureKind",
    "Launch",
    "Observation",
    "Process",
    "ProcessRole",
    "Raised",
    "Repeats",
    "Repro",
    "Role",
    "Signature",
    "Stack",
    "Unavailable",
    "Upstream",
    "Variant",
    "Verdict",
    "cell_label",
]
