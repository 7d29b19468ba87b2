"""Imports of large packages without garbage collection."""

from __future__ import annotations

import gc
from importlib.machinery import ModuleSpec
from typing import Any

from repros.simulated_gpus.import_hooks import before_import

_LARGE = ("torch", "torch._dynamo", "lightning", "pytorch_lightning", "torchmetrics", "transformers", "datasets")
"""Names of modules whose import creates some 100,000 objects or more, with what it imports."""


def collect_after_imports() -> None:
    """Let no garbage be collected during the import of a large package, whose objects are none.

    Each full collection visits all objects, and there are six during the import of Lightning with torch 2.15: 0.8 s of
    4.2 s of processor time, which each process of a cold job would take again.
    """
    for name in _LARGE:
        before_import(name, _collect_after)


def _collect_after(spec: ModuleSpec) -> None:
    """Make the loader of a module disable the garbage collector while it executes the module."""
    loader: Any = spec.loader
    if loader is None:  # a folder without `__init__.py`
        return
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            execute(module)
        finally:
            if was_enabled:
                if not gc.get_freeze_count():
                    # All objects become old ones, so the next collection of young ones does not visit them.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    loader.exec_module = exec_module
