"""Cells whose rendezvous lost its port: another process took it between the choice and the use."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from repros.engine.cells import run_cell
from repros.engine.launch import Servers
from repros.model import Cell, CellResult, Unavailable, Verdict

_TAKEN = re.compile(r"Address already in use|EADDRINUSE")


def run_cell_with_port(
    item: Cell | Unavailable,
    runs: Path,
    stop: threading.Event | None = None,
    servers: Servers | None = None,
    repeat: int = 1,
) -> CellResult:
    """Run a cell as :func:`run_cell` does, and once more, below the folder `again`, if its port was taken.

    The port is chosen when the cell starts, and rank 0 listens on it seconds later. Until then Linux may give it to any
    connection of another process. That says nothing about the documented failure. If the second attempt loses its
    port, too, the verdict stays `infra`.
    """
    result = run_cell(item, runs, stop, servers, repeat)
    if result.verdict is not Verdict.INFRA or not _TAKEN.search(result.reason) or (stop is not None and stop.is_set()):
        return result
    return run_cell(item, runs / "again", stop, servers, repeat)
