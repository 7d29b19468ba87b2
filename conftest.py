"""Load the project's own pytest plugin in a clone that is not installed; keep the collector off what tests import."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from importlib.metadata import entry_points

import pytest

# An installed plugin is loaded by its entry point already; another conftest may have loaded it too.
if "repros.pytest_plugin" not in sys.modules and not entry_points(group="pytest11", name="repros"):
    pytest_plugins = ["repros.pytest_plugin"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector, and let it never look through them again: a fifth of their time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
