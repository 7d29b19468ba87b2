"""The frozen nouns: the only words the rest of the project speaks in."""

from __future__ import annotations

from repros.model.cell import Cell, Expectation, Unavailable
from repros.model.environment import Environment
from repros.model.observation import Ending, Observation, Process, Raised
from repros.model.repro import Device, Outcome, Repro, Signature, Variant
from repros.model.stack import Stack
from repros.model.verdict import Category, Repeats, Result, Verdict

__all__ = [
    "Category",
    "Cell",
    "Device",
    "Ending",
    "Environment",
    "Expectation",
    "Observation",
    "Outcome",
    "Process",
    "Raised",
    "Repeats",
    "Repro",
    "Result",
    "Signature",
    "Stack",
    "Unavailable",
    "Variant",
    "Verdict",
]
