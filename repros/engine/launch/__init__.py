"""Runs one cell and returns what was seen; nothing else in the project knows how a cell is run."""

from __future__ import annotations

import threading
from pathlib import Path

from repros.engine.launch import cold, supervise
from repros.engine.launch.warm import Servers
from repros.model import Cell, Observation

__all__ = ["Servers", "run"]


def run(cell: Cell, folder: Path, stop: threading.Event | None = None, servers: Servers | None = None) -> Observation:
    """Run one cell below `folder`, which must be new, and return when no process of it lives.

    Args:
        cell: what to run.
        folder: for its logs and events.
        stop: ends the run early when it is set; the observation is `broken` then.
        servers: the warm servers to launch it through; without them it is launched cold, as a user would.
    """
    if servers is None:
        return supervise.run(cell, folder, cold.launch, "cold", stop or threading.Event())
    return supervise.run(cell, folder, servers.launch, "warm", stop or threading.Event())
