"""The engine on this machine: cells run at once, as the schedule starts them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from queue import SimpleQueue

from repros.engine.cells import is_warm, run_cell_with_port, without_loss
from repros.engine.environment import Targets, prepare
from repros.engine.environments.use import drop_afterwards
from repros.engine.inventory import Inventory, take_inventory
from repros.engine.launch import Servers
from repros.engine.own_folder import new_log_folder
from repros.engine.plan import CellSpec, plan
from repros.engine.preparation import Part, Preparation
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
        # A required device is looked for in all environments before a cell runs, and one job follows the plan's order.
        is_whole = targets.python is not None or options.require or options.jobs == 1
        with contextlib.ExitStack() as held:
            for name in stacks:
                held.enter_context(drop_afterwards(targets.known[name], observer.report_progress, keep=keep is True))
            if is_whole:
                environments = held.enter_context(prepare(specs, targets, observer.report_progress, options.require))
                cells = plan(specs, environments, options.require)
                observer.planned(cells)
                results = run_cells(cells, new_log_folder(out), options, observer)
            else:
                preparation = held.enter_context(Preparation(specs, targets, observer.report_progress))
                observer.planned(preparation.expected)
                results = run_prepared(preparation, new_log_folder(out), options, observer)
            with contextlib.closing(results):
                yield from (without_loss(result, targets.known) for result in results)


HERE: Engine = _Here()
"""The engine on this machine."""


def run_cells(
    cells: Sequence[Cell | Unavailable],
    runs: Path,
    options: RunOptions = DEFAULT_OPTIONS,
    observer: Observer = IGNORE_PROGRESS,
) -> Generator[CellResult, None, None]:
    """Run and judge cells at once, as the schedule starts them; yield each result as soon as it is known.

    If the caller stops iterating early, usually by Ctrl-C, the running cells are ended and no further cell starts.

    Args:
        cells: what to run; an unavailable cell gives a result with its reason.
        runs: folder for the cells' logs.
        options: how to run them; those about environments are ignored.
        observer: receives progress.
    """
    events: Events = SimpleQueue()
    events.put(Part(cells))
    yield from _run(events, [], cells, runs, options, observer)


def run_prepared(
    preparation: Preparation, runs: Path, options: RunOptions, observer: Observer
) -> Generator[CellResult, None, None]:
    """Run and judge the cells of a preparation, each as soon as its part is prepared; otherwise as `run_cells`."""
    events: Events = SimpleQueue()
    preparation.start(events.put)
    yield from _run(events, list(preparation.stacks), preparation.expected, runs, options, observer)


Events = SimpleQueue["Part | BaseException | Future[CellResult]"]
"""What a run waits for: cells that can start, what failed, and cells that have ended."""


def _run(
    events: Events,
    awaited: list[str],
    expected: Sequence[Cell | Unavailable],
    runs: Path,
    options: RunOptions,
    observer: Observer,
) -> Generator[CellResult, None, None]:
    """Run cells until all of the events' parts have ended.

    Args:
        events: receives the parts, and here the results.
        awaited: names of the stacks that are not prepared yet; if there is none, a single part comes.
        expected: about what the parts will contain, from which the resources are planned.
        runs: folder for the cells' logs.
        options: how to run the cells.
        observer: receives progress.
    """
    stop = threading.Event()

    def run(item: Cell | Unavailable) -> CellResult:
        if isinstance(item, Cell):
            observer.started(item)
        warm = servers if is_warm(item, options.launch) else None
        return run_cell_with_port(item, runs, stop, warm, options.repeat)

    _, inventory = plan_slots(expected, options.timings, options.launch)
    schedule = Schedule({}, inventory, jobs=options.jobs, share_gpus=options.share_gpus)
    with (
        Servers(runs / "servers", observer.report_progress) as servers,
        ThreadPoolExecutor(max_workers=max(1, len(expected))) as pool,
    ):
        slots = _Slots(schedule, pool, run, events)
        observer.awaited(awaited)
        try:
            yield from slots.results(awaited, options, observer)
        except KeyboardInterrupt:
            yield from slots.complete()
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
        schedule: Schedule,
        pool: ThreadPoolExecutor,
        run: Callable[[Cell | Unavailable], CellResult],
        events: Events,
    ) -> None:
        """Prepare without starting a cell."""
        self._schedule, self._pool, self._run, self._events = schedule, pool, run, events
        self._items: list[Cell | Unavailable] = []
        self._futures: list[Future[CellResult]] = []
        self._yielded: set[Future[CellResult]] = set()
        self._closed = False
        self._lock = threading.Lock()

    def results(self, awaited: list[str], options: RunOptions, observer: Observer) -> Iterator[CellResult]:
        """Start the cells of each part, and yield each result, until all stacks are prepared and all cells ended.

        Args:
            awaited: names of the stacks that are not prepared yet; they are removed as they become ready.
            options: with one job, the results come in the order of the plan.
            observer: receives the stacks that are not prepared yet.
        """
        in_order = options.jobs == 1
        while awaited or not self._futures or len(self._yielded) < len(self._futures):
            event = self._events.get()
            if isinstance(event, BaseException):
                raise event
            if isinstance(event, Part):
                self.add(event.cells, options)
                if event.ready is not None:
                    awaited.remove(event.ready)
                    observer.awaited(awaited)
                if not self._futures and not awaited:
                    return
                continue
            yield from self._take([event] if not in_order else self._next())

    def _next(self) -> Iterator[Future[CellResult]]:
        """Yield the futures that are done, in the order of the plan."""
        return takewhile(Future.done, self._futures[len(self._yielded) :])

    def _take(self, futures: Iterable[Future[CellResult]]) -> Iterator[CellResult]:
        for future in futures:
            yield future.result()
            self._yielded.add(future)

    def complete(self) -> Iterator[CellResult]:
        """Yield the results that were complete before an interrupt, even if another was being yielded."""
        return self._take([future for future in self._futures if future.done() and future not in self._yielded])

    def add(self, items: Sequence[Cell | Unavailable], options: RunOptions) -> None:
        """Queue cells, and start every cell that fits now; the end of each cell starts further ones."""
        begin = len(self._items)
        futures: list[Future[CellResult]] = [Future() for _ in items]
        self._items += items
        self._futures += futures
        for future in futures:
            future.add_done_callback(self._events.put)
        for item, future in zip(items, futures, strict=True):
            if isinstance(item, Unavailable):
                future.set_result(self._run(item))
        with self._lock:
            wanted = _needs(items, options.timings, options.launch)
            self._schedule.add({begin + number: needed for number, needed in wanted.items()})
            self._start()

    def close(self) -> None:
        """Start no further cell."""
        with self._lock:
            self._closed = True

    def _start(self) -> None:
        while not self._closed and (start := self._schedule.start()):
            self._pool.submit(self._run_one, start)

    def _run_one(self, start: Start) -> None:
        item, future = self._items[start.number], self._futures[start.number]
        try:
            result = self._run(replace(item, gpus=start.gpus) if start.gpus and isinstance(item, Cell) else item)
            with self._lock:
                self._schedule.end(start.number)
                self._start()
        except BaseException as error:  # noqa: BLE001 - raised where the results are taken, which ends the run
            future.set_exception(error)
        else:
            future.set_result(result)


def _needs(
    items: Iterable[Cell | Unavailable], timings: Timings, launch: Launch | None = None
) -> dict[int, ResourceNeeds]:
    """Return the needs of each cell that can run, by its position."""
    cells = {number: item for number, item in enumerate(items) if isinstance(item, Cell)}
    return {number: needs(cell, timings(cell), cold=not is_warm(cell, launch)) for number, cell in cells.items()}


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
    items = list(items)
    cells = [item for item in items if isinstance(item, Cell)]
    servers = {(c.environment.name, c.device, c.processes) for c in cells if is_warm(c, launch)}
    gpus = max((c.environment.counts.get(c.device, 0) for c in cells if c.device is Device.CUDA), default=0)
    inventory = inventory or take_inventory(gpus)
    free = replace(inventory, memory=max(1, inventory.memory - _SERVER * len(servers)))
    return _needs(items, timings, launch), free
