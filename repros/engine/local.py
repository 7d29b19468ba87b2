"""Cells on this machine, side by side, as the schedule starts them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from repros.engine.cells import is_warm
from repros.engine.inventory import Inventory, take_inventory
from repros.engine.launch import Servers
from repros.engine.port import run_cell_with_port
from repros.engine.schedule import Needs, Schedule, Start, Timing, needs
from repros.model import Cell, CellResult, Device, Launch, Unavailable

Timings = Callable[[Cell], Timing | None]
"""Returns how long a cell took before; None if it has never been timed."""

_SERVER = 250 * 2**20
"""Bytes of a warm server, of which there is one for each interpreter, device and number of devices."""


def run_cells(
    cells: Sequence[Cell | Unavailable],
    runs: Path,
    *,
    jobs: int | None = None,
    launch: Launch | None = None,
    repeat: int = 1,
    timings: Timings = lambda _: None,
    share_gpus: bool = False,
    started: Callable[[Cell], None] = lambda _: None,
    report_progress: Callable[[str], None] = lambda _: None,
) -> Iterator[CellResult]:
    """Run and judge cells side by side; yield each result as soon as it is known.

    If the caller stops iterating early, usually by Ctrl-C, the running cells are ended and no further cell starts.

    Args:
        cells: what to run; an unavailable cell gives a result with its reason.
        runs: folder for the cells' logs.
        jobs: how many cells run side by side; None: as many as this machine has cores for. With 1, cells run and
            results come in the order given.
        launch: how to start them; None: warm, but cold where the repro asks for it.
        repeat: how often to run each cell.
        timings: from earlier runs, by which the longest cells start first.
        share_gpus: whether cells may run side by side on one GPU.
        started: called from the worker threads when a cell starts.
        report_progress: receives lines of progress, from the same threads.
    """
    stop = threading.Event()

    def run(item: Cell | Unavailable) -> CellResult:
        if isinstance(item, Cell):
            started(item)
        return run_cell_with_port(item, runs, stop, servers if is_warm(item, launch) else None, repeat)

    schedule = Schedule(*plan_slots(cells, timings, launch), jobs=jobs, share_gpus=share_gpus)
    with (
        Servers(runs / "servers", report_progress) as servers,
        ThreadPoolExecutor(max_workers=max(1, len(cells))) as pool,
    ):
        slots = _Slots(cells, schedule, pool, run)
        pending = slots.results
        yielded: set[Future[CellResult]] = set()
        try:
            slots.fill()
            # One at a time, cells end in the order of the plan, so the results file has that order too.
            for future in pending if jobs == 1 else as_completed(pending):
                yield future.result()
                yielded.add(future)
        except KeyboardInterrupt:
            # Results that were complete before the interrupt are kept, even if another result was being yielded.
            yield from (future.result() for future in pending if future.done() and future not in yielded)
            raise
        finally:
            stop.set()
            slots.close()
            # Before the pool, which waits for its cells: a cell may be waiting for a server's imports.
            servers.close()


class _Slots:
    """The cells of one run: those that wait, those that run, and the future result of each."""

    def __init__(
        self,
        items: Sequence[Cell | Unavailable],
        schedule: Schedule,
        pool: ThreadPoolExecutor,
        run: Callable[[Cell | Unavailable], CellResult],
    ) -> None:
        """Take the cells and who runs them; nothing starts yet."""
        self.results: list[Future[CellResult]] = [Future() for _ in items]
        self._items, self._schedule, self._pool, self._run = items, schedule, pool, run
        self._closed = False
        self._lock = threading.Lock()

    def fill(self) -> None:
        """Start every cell that fits now; the end of each starts further ones."""
        for item, result in zip(self._items, self.results, strict=True):
            if isinstance(item, Unavailable):
                result.set_result(self._run(item))
        with self._lock:
            self._start()

    def close(self) -> None:
        """Start no further cell."""
        with self._lock:
            self._closed = True

    def _start(self) -> None:
        while not self._closed and (start := self._schedule.start()):
            self._pool.submit(self._run_one, start)

    def _run_one(self, start: Start) -> None:
        item, future = self._items[start.number], self.results[start.number]
        try:
            result = self._run(replace(item, gpus=start.gpus) if start.gpus and isinstance(item, Cell) else item)
            with self._lock:
                self._schedule.end(start.number)
                self._start()
        except BaseException as error:  # noqa: BLE001 - raised where the results are taken, which ends the run
            future.set_exception(error)
        else:
            future.set_result(result)


def plan_slots(
    items: Iterable[Cell | Unavailable],
    timings: Timings,
    launch: Launch | None = None,
    inventory: Inventory | None = None,
) -> tuple[dict[int, Needs], Inventory]:
    """Return what each cell that can run needs, by its place in the plan, and what there is for all of them.

    Args:
        items: the plan.
        timings: from earlier runs.
        launch: how to start them; None: warm, but cold where the repro asks for it.
        inventory: what the cells and their servers share; None: what this machine has now.
    """
    cells = {number: item for number, item in enumerate(items) if isinstance(item, Cell)}
    warm = {number for number, cell in cells.items() if is_warm(cell, launch)}
    wanted = {number: needs(cell, timings(cell), cold=number not in warm) for number, cell in cells.items()}
    servers = {(cells[n].environment.python, cells[n].device, cells[n].processes) for n in warm}
    gpus = max((c.environment.counts.get(c.device, 0) for c in cells.values() if c.device is Device.CUDA), default=0)
    inventory = inventory or take_inventory(gpus)
    return wanted, replace(inventory, memory=max(1, inventory.memory - _SERVER * len(servers)))
