"""Load the project's own pytest plugin in a clone that is not installed."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

# An installed plugin is loaded by its entry point already; another conftest may have loaded it too.
if "repros.pytest_plugin" not in sys.modules and not entry_points(group="pytest11", name="repros"):
    pytest_plugins = ["repros.pytest_plugin"]
