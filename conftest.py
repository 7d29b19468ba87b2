"""Makes the project's own plugin work in a clone that is not installed."""

from __future__ import annotations

from importlib.metadata import entry_points

# Once installed, pytest has loaded it already by its entry point, and refuses to do so twice.
if not entry_points(group="pytest11", name="repros"):
    pytest_plugins = ["repros.plugin"]
