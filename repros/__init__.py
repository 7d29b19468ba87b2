"""Documented training-framework failures that run, and a verdict with evidence for each.

A program that has this project installed can watch itself: :func:`watching` and :func:`lightning_callback`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repros.diagnose.watch.callback import lightning_callback
    from repros.diagnose.watch.incode import watching

__version__ = "0.2.0"
__all__ = ["lightning_callback", "watching"]

_MODULES = {"watching": "repros.diagnose.watch.incode", "lightning_callback": "repros.diagnose.watch.callback"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # imported on first use: no command and no process under test needs them
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
