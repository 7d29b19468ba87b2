"""The folder of toy scripts, and the processes that a toy's cell has left running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from repros.model import CellResult

TOYS = Path(__file__).parent / "toys"

Play = Callable[..., CellResult]
"""Runs a toy in real processes and judges it: the fixture `play`."""


def living(folder: Path) -> list[psutil.Process]:
    """Return the processes that have the cell's token in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            token = process.environ().get("REPROS_CELL")
            if token == str(folder.resolve()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
