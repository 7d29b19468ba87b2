"""Cells: choose how to launch one, run and judge it."""

from __future__ import annotations

import re
import threading
import traceback
from pathlib import Path

from repros.engine.judge import combine, judge
from repros.engine.launch import Servers, run
from repros.model import Cell, CellResult, Launch, Unavailable, Verdict


def is_warm(item: Cell | Unavailable, launch: Launch | None = None) -> bool:
    """Return whether a cell is launched through a warm server.

    Args:
        item: the cell.
        launch: what the user asked for; None: warm, but cold for the strategies that the repro lists as cold.
    """
    cell = item.cell if isinstance(item, Unavailable) else item
    return launch is Launch.WARM or (launch is None and cell.strategy not in cell.repro.cold)


def run_cell(
    item: Cell | Unavailable,
    runs: Path,
    stop: threading.Event | None = None,
    servers: Servers | None = None,
    repeat: int = 1,
) -> CellResult:
    """Run one cell `repeat` times and judge it; an unavailable cell gives a result too."""
    if isinstance(item, Unavailable):
        return CellResult(item.cell, Verdict.UNAVAILABLE, item.reason)
    folder = runs / folder_name(item)
    if repeat == 1:
        return _run_once(item, folder, stop, servers)
    results = []
    for number in range(1, repeat + 1):
        results.append(_run_once(item, folder / f"{number:03}", stop, servers))
        if stop is not None and stop.is_set():
            break
    return combine(results)


def _run_once(cell: Cell, folder: Path, stop: threading.Event | None, servers: Servers | None) -> CellResult:
    """Run and judge a cell once; an error of the engine itself costs this cell, not the rest of the run."""
    try:
        return judge(cell, run(cell, folder, stop, servers))
    except Exception as error:  # noqa: BLE001 - this cell reports any error and the others go on
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "engine.log").write_text(traceback.format_exc(), encoding="utf-8")
        reason = f"the engine failed with {type(error).__name__}: {error} (see {folder / 'engine.log'})"
        return CellResult(cell, Verdict.INFRA, reason)


def folder_name(cell: Cell) -> str:
    """Return a name for the cell's folder that is valid on any file system."""
    return re.sub(r"[^\w.-]+", "-", cell.label).strip("-")
