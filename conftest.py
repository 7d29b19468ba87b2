"""Makes the project's own plugin work in a clone that is not installed."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

# Once installed, pytest has loaded it by its entry point; in a run from elsewhere, somebody else may have.
if "repros.pytest_plugin" not in sys.modules and not entry_points(group="pytest11", name="repros"):
    pytest_plugins = ["repros.pytest_plugin"]
