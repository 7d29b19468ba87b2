"""Cells: choose how to launch each, run and judge them, several side by side."""

from __future__ import annotations

import os
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from repros.engine.judge import combine, judge
from repros.engine.launch import Servers, run
from repros.model import Cell, Launch, Result, Unavailable, Verdict

JOBS = min(2, os.cpu_count() or 1)
"""Default number of cells that run side by side.

On two cores the 40 cells of RPR-0001 to RPR-0005 on `current` took 42 s one at a time, 33 s two and 30 s three at a
time. A third job takes another half gigabyte of memory, and slower cells come closer to their deadlines.
"""


def run_cells(
    cells: Sequence[Cell | Unavailable],
    runs: Path,
    *,
    jobs: int = JOBS,
    launch: Launch | None = None,
    repeat: int = 1,
    started: Callable[[Cell], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Result]:
    """Run and judge cells, `jobs` of them side by side; yield each result as soon as it is known.

    If the caller stops iterating early, usually by Ctrl-C, the running cells are ended and no further cell starts.

    Args:
        cells: what to run; an unavailable cell gives a result with its reason.
        runs: folder for the cells' logs.
        jobs: how many cells run side by side.
        launch: how to start them; None: warm, but cold where the repro asks for it.
        repeat: how often to run each cell.
        started: called from the worker threads when a cell starts.
        say: receives lines of progress, from the same threads.
    """
    stop = threading.Event()

    def run_next(item: Cell | Unavailable) -> Result:
        if isinstance(item, Cell):
            started(item)
        return run_cell(item, runs, stop, servers if is_warm(item, launch) else None, repeat)

    with Servers(runs / "servers", say) as servers, ThreadPoolExecutor(max_workers=jobs) as pool:
        pending = [pool.submit(run_next, item) for item in cells]
        yielded: set[Future[Result]] = set()
        try:
            # A single worker finishes cells in the order of the plan, so the results file has that order too.
            for future in pending if jobs == 1 else as_completed(pending):
                yield future.result()
                yielded.add(future)
        except KeyboardInterrupt:
            # Results that were complete before the interrupt are kept, even if another result was being yielded.
            yield from (future.result() for future in pending if future.done() and future not in yielded)
            raise
        finally:
            stop.set()
            # Before the pool, which waits for its cells: a cell may be waiting for a server's imports.
            servers.close()
            pool.shutdown(cancel_futures=True)


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
) -> Result:
    """Run one cell `repeat` times and judge it; an unavailable cell gives a result too."""
    if isinstance(item, Unavailable):
        return Result(item.cell, Verdict.UNAVAILABLE, item.reason)
    folder = runs / folder_name(item)
    if repeat == 1:
        return _run_once(item, folder, stop, servers)
    results = []
    for number in range(1, repeat + 1):
        results.append(_run_once(item, folder / f"{number:03}", stop, servers))
        if stop is not None and stop.is_set():
            break
    return combine(results)


def _run_once(cell: Cell, folder: Path, stop: threading.Event | None, servers: Servers | None) -> Result:
    """Run and judge a cell once; an error of the engine itself costs this cell, not the rest of the run."""
    try:
        return judge(cell, run(cell, folder, stop, servers))
    except Exception as error:  # noqa: BLE001 - this cell reports any error and the others go on
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "engine.log").write_text(traceback.format_exc(), encoding="utf-8")
        reason = f"the engine failed with {type(error).__name__}: {error} (see {folder / 'engine.log'})"
        return Result(cell, Verdict.INFRA, reason)


def folder_name(cell: Cell) -> str:
    """Return a name for the cell's folder that is valid on any file system."""
    return re.sub(r"[^\w.-]+", "-", cell.label).strip("-")
