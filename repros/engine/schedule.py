"""The schedule: what each cell needs of a machine, and which cell starts next. No I/O, no clock.

:class:`Schedule` is list scheduling: whenever something is free, the longest cell starts that fits into it. Two things
differ. A cell that is documented to hang uses no processor while it waits for its deadline, so such cells start first
and beside the slots. And the longest cell, if it does not fit, is overtaken a limited number of times: then what it
lacks is kept for it, so that a large cell comes to its turn.
"""

from __future__ import annotations

import bisect
import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from repros.engine.inventory import Inventory
from repros.model import Cell, Device, Ending, ExpectedOutcome

SECONDS = 4.0
"""Assumed for a cell that has never been timed."""
_RUNNER = 0.05
"""Seconds of processor time by which the runner starts, watches and judges a cell."""
_OVERTAKEN = 8
"""How often the longest cell may be overtaken if it does not fit."""
_STEPS = 8
"""Cores are counted in so many parts, so that cells of one kind wait in one queue."""


class _Kind(NamedTuple):
    """What is known of cells that are started in one way."""

    memory: int
    """Bytes for each process."""
    cores: float
    """Cores that a cell keeps busy, if that was not measured."""
    fewest: float
    """So many at least, whatever was measured: on a machine under load, a cell looks as if it only waited."""


_WARM = _Kind(150 * 2**20, 1 / 2, 1 / 3)
"""Forked from a server that has imported the libraries."""
_COLD = _Kind(450 * 2**20, 1.0, 2 / 3)
"""Each process imports them itself."""


@dataclass(frozen=True)
class Timing:
    """How long a cell took when it was last measured."""

    seconds: float
    processor: float | None = None
    """Seconds of processor time of all its processes; None if they were not measured."""


@dataclass(frozen=True)
class Needs:
    """What a cell needs, and for how long."""

    processes: int
    cores: float
    """Cores that it keeps busy, on average."""
    memory: int
    """Bytes."""
    gpus: int = 0
    waits: bool = False
    """Whether it is documented to hang: it uses no processor until it ends."""
    seconds: float = SECONDS


def needs(cell: Cell, timing: Timing | None = None, *, cold: bool | None = None) -> Needs:
    """Return what a cell needs.

    Args:
        cell: the cell.
        timing: how long it took before; None if it has never been timed.
        cold: whether each process imports the libraries itself; by default as the repro asks for.
    """
    kind = _COLD if (cell.strategy in cell.repro.cold if cold is None else cold) else _WARM
    return Needs(
        processes=cell.processes,
        cores=_cores(kind, timing),
        memory=cell.processes * kind.memory,
        gpus=cell.processes if cell.device is Device.CUDA else 0,
        waits=is_documented_hang(cell),
        seconds=timing.seconds if timing else SECONDS,
    )


def is_documented_hang(cell: Cell) -> bool:
    """Return whether a cell is documented to hang on its environment."""
    ends = cell.variant.signature.ends
    return ends is not None and ends.ending is Ending.TIMED_OUT and cell.expectation.outcome is ExpectedOutcome.FAILS


def _cores(kind: _Kind, timing: Timing | None) -> float:
    if timing is None or timing.processor is None or timing.seconds <= 0:
        return kind.cores
    return max(kind.fewest, (timing.processor + _RUNNER) / timing.seconds)


class Start(NamedTuple):
    """A cell that starts, by its number, and the GPUs that it gets."""

    number: int
    gpus: tuple[str, ...]


class _Amount(NamedTuple):
    """A part of the machine: what a cell takes, or what is free."""

    slots: float
    """Cores, or the cells of `--jobs`."""
    beside: float
    """Cells that wait beside the slots."""
    memory: float
    gpus: float

    def fits(self, free: _Amount) -> bool:
        """Return whether it is free; written out, as it is asked more often than all else."""
        slots, beside, memory, gpus = free
        return self.slots <= slots and self.gpus <= gpus and self.memory <= memory and self.beside <= beside

    def lacking(self, free: _Amount) -> list[int]:
        """Return the positions of what is not free."""
        return [at for at, (wanted, left) in enumerate(zip(self, free, strict=True)) if wanted > left]


class Schedule:
    """Which cells wait, which run, and what is free; a step takes microseconds, however many cells wait."""

    def __init__(
        self, cells: Mapping[int, Needs], inventory: Inventory, *, jobs: int | None = None, share_gpus: bool = False
    ) -> None:
        """Queue the cells.

        Args:
            cells: what each needs, by a number that names it.
            inventory: what they share. A cell that needs more than all of it runs when the rest is free.
            jobs: how many run side by side, however many cores they need; None: as many as the cores allow. With 1 they
                run one at a time, in the order given.
            share_gpus: whether cells may run side by side on one GPU.
        """
        slots = jobs or max(1, int(inventory.cores * _STEPS)) / _STEPS
        self._total = _Amount(slots, 0 if jobs == 1 else max(1, int(slots)), inventory.memory, len(inventory.gpus))
        self._jobs, self._share = jobs, share_gpus
        self._free = self._total
        self._cells = cells
        self._users = dict.fromkeys(inventory.gpus, 0)
        self._running: dict[int, tuple[_Amount, tuple[str, ...]]] = {}
        self._queues: dict[_Amount, deque[int]] = {}
        order = list(cells) if jobs == 1 else sorted(cells, key=self._urgency)
        self._places = {number: place for place, number in enumerate(order)}
        for number in order:
            self._queues.setdefault(self._amount(cells[number]), deque()).append(number)
        self._heads = sorted((self._places[queue[0]], amount) for amount, queue in self._queues.items())
        self._overtaken = (-1, 0)

    def _urgency(self, number: int) -> tuple[bool, float]:
        cell = self._cells[number]
        return not cell.waits, -cell.seconds

    def _amount(self, cell: Needs) -> _Amount:
        """Return what a cell takes, at most all there is."""
        beside = cell.waits and self._total.beside > 0
        slots = 0.0 if beside else 1.0 if self._jobs else max(1, round(cell.cores * _STEPS)) / _STEPS
        wanted = _Amount(slots, int(beside), cell.memory, 0 if self._share else cell.gpus)
        return _Amount(*map(min, wanted, self._total))

    def start(self) -> Start | None:
        """Start the next cell that fits, and return it; None if none fits now, or none waits."""
        kept: list[int] = []
        blocked = -1
        missing: list[int] = []
        for at, (place, amount) in enumerate(self._heads):
            if amount.fits(self._free) and not any(amount[which] for which in kept):
                if any(amount[which] for which in missing):
                    self._overtaken = blocked, self._times_overtaken(blocked) + 1
                return self._take(at)
            if blocked < 0 and not amount.beside:
                blocked, missing = place, amount.lacking(self._free)
                kept = missing if self._times_overtaken(place) >= _OVERTAKEN else []
        return None

    def _times_overtaken(self, place: int) -> int:
        overtaken, times = self._overtaken
        return times if place == overtaken else 0

    def _take(self, at: int) -> Start:
        _, amount = self._heads.pop(at)
        queue = self._queues[amount]
        number = queue.popleft()
        if queue:
            bisect.insort(self._heads, (self._places[queue[0]], amount))
        self._free = _Amount(*(free - taken for free, taken in zip(self._free, amount, strict=True)))
        gpus = tuple(sorted(self._users, key=self._users.__getitem__)[: self._cells[number].gpus])
        for gpu in gpus:
            self._users[gpu] += 1
        self._running[number] = amount, gpus
        return Start(number, gpus)

    def end(self, number: int) -> None:
        """Take back what a running cell had."""
        amount, gpus = self._running.pop(number)
        self._free = _Amount(*(free + taken for free, taken in zip(self._free, amount, strict=True)))
        for gpu in gpus:
            self._users[gpu] -= 1


def simulate(
    cells: Mapping[int, Needs], inventory: Inventory, *, jobs: int | None = None, share_gpus: bool = False
) -> float:
    """Return the seconds until the last cell ends, if each takes as long as its needs say."""
    schedule = Schedule(cells, inventory, jobs=jobs, share_gpus=share_gpus)
    now, running = 0.0, list[tuple[float, int]]()
    while True:
        while start := schedule.start():
            heapq.heappush(running, (now + cells[start.number].seconds, start.number))
        if not running:
            return now
        now, number = heapq.heappop(running)
        schedule.end(number)
