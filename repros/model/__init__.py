"""The frozen values that all other packages exchange, each imported when its name is first used.

Making a frozen dataclass takes as long as hundreds of function calls, and most commands need few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repros.model.cell import Cell, Expectation, Unavailable, cell_label
    from repros.model.environment import Environment
    from repros.model.kinds import Device, ExpectedOutcome, FailureKind, Role
    from repros.model.observation import Launch, Observation, Process, ProcessRole
    from repros.model.raised import Ending, Raised
    from repros.model.repro import End, Repro, Signature, Upstream, Variant
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

_MODULES = {
    "cell": ("Cell", "Expectation", "Unavailable", "cell_label"),
    "environment": ("Environment",),
    "kinds": ("Device", "ExpectedOutcome", "FailureKind", "Role"),
    "observation": ("Launch", "Observation", "Process", "ProcessRole"),
    "raised": ("Ending", "Raised"),
    "repro": ("End", "Repro", "Signature", "Upstream", "Variant"),
    "stack": ("Stack",),
    "verdict": ("Category", "CellResult", "Repeats", "Verdict"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a value's class from its module, and keep it for the next use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value
