"""The engine on this machine: cells run at once, as the schedule starts them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from repros.engine.cells import is_warm, run_cell_with_port, without_loss
from repros.engine.environment import Targets, prepare
from repros.engine.environments.use import drop_afterwards
from repros.engine.inventory import Inventory, take_inventory
from repros.engine.launch import Servers
from repros.engine.own_folder import new_log_folder
from repros.engine.plan import CellSpec, plan
from repros.engine.run_options import (
    DEFAULT_OPTIONS,
    IGNORE_PROGRESS,
    Engine,
    Observer,
    RunOptions,
    Timings,
)
from repros.engine.schedule import ResourceNeeds, Schedule, Start, needs
from repros.model import Cell, CellResult, Device, Launch, Unavailable

_SERVER = 250 * 2**20
"""Bytes of a warm server; there is one for each interpreter, device and number of devices."""


class _Here:
    """The engine on this machine."""

    gpus = None

    def run(
        self, specs: Sequence[CellSpec], targets: Targets, out: Path, observer: Observer, options: RunOptions
    ) -> Generator[CellResult, None, None]:
        """Make the environments, and run the cells in them; :class:`Engine` explains the arguments."""
        keep = options.keep_environments
        stacks = [] if keep is None else {s.name: s for e in specs for s in targets.stacks_of(e.repro)}
        with contextlib.ExitStack() as held:
            for name in stacks:
                held.enter_context(drop_afterwards(targets.known[name], observer.report_progress, keep=keep is True))
            environments = held.enter_context(prepare(specs, targets, observer.report_progress, options.require))
            cells = plan(specs, environments, options.require)
            observer.planned(cells)
            results = run_cells(cells, new_log_folder(out), options, observer)
            yield from (without_loss(result, targets.known) for result in results)


HERE: Engine = _Here()
"""The engine on this machine."""


def run_cells(
    cells: Sequence[Cell | Unavailable],
    runs: Path,
    options: RunOptions = DEFAULT_OPTIONS,
    observer: Observer = IGNORE_PROGRESS,
) -> Iterator[CellResult]:
    """Run and judge cells at once, as the schedule starts them; yield each result as soon as it is known.

    If the caller stops iterating early, usually by Ctrl-C, the running cells are ended and no further cell starts.

    Args:
        cells: what to run; an unavailable cell gives a result with its reason.
        runs: folder for the cells' logs.
        options: how to run them; those about environments are ignored.
        observer: receives progress.
    """
    stop = threading.Event()

    def run(item: Cell | Unavailable) -> CellResult:
        if isinstance(item, Cell):
            observer.started(item)
        warm = servers if is_warm(item, options.launch) else None
        return run_cell_with_port(item, runs, stop, warm, options.repeat)

    needs_and_inventory = plan_slots(cells, options.timings, options.launch)
    schedule = Schedule(*needs_and_inventory, jobs=options.jobs, share_gpus=options.share_gpus)
    with (
        Servers(runs / "servers", observer.report_progress) as servers,
        ThreadPoolExecutor(max_workers=max(1, len(cells))) as pool,
    ):
        slots = _Slots(cells, schedule, pool, run)
        pending = slots.results
        yielded: set[Future[CellResult]] = set()
        try:
            slots.fill()
            # One at a time, cells end in the order of the plan, so the results file has that order too.
            for future in pending if options.jobs == 1 else as_completed(pending):
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
        """Prepare without starting a cell."""
        self.results: list[Future[CellResult]] = [Future() for _ in items]
        self._items, self._schedule, self._pool, self._run = items, schedule, pool, run
        self._closed = False
        self._lock = threading.Lock()

    def fill(self) -> None:
        """Start every cell that fits now; the end of each cell starts further ones."""
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
) -> tuple[dict[int, ResourceNeeds], Inventory]:
    """Return the needs of each cell that can run, by its position in the plan, and the inventory for all of them.

    Args:
        items: the plan.
        timings: from earlier runs.
        launch: how they are started; None: warm, but cold for the strategies that the repro lists as cold.
        inventory: the resources that cells and their servers share; None: those of this machine now.
    """
    cells = {number: item for number, item in enumerate(items) if isinstance(item, Cell)}
    warm = {number for number, cell in cells.items() if is_warm(cell, launch)}
    wanted = {number: needs(cell, timings(cell), cold=number not in warm) for number, cell in cells.items()}
    servers = {(cells[n].environment.python, cells[n].device, cells[n].processes) for n in warm}
    gpus = max((c.environment.counts.get(c.device, 0) for c in cells.values() if c.device is Device.CUDA), default=0)
    inventory = inventory or take_inventory(gpus)
    return wanted, replace(inventory, memory=max(1, inventory.memory - _SERVER * len(servers)))
