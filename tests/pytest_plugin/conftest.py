"""Fixture for the plugin's tests: a user's project in which pytest loads the plugin."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def bare_project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project that loads the plugin, installed or not."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makeconftest(
        """
        from importlib.metadata import entry_points

        if not entry_points(group="pytest11", name="repros"):
            pytest_plugins = ["repros.pytest_plugin"]
        """
    )
    return pytester
