"""The schedule: the needs of each cell, and which cell starts next. No I/O, no clock.

:class:`Schedule` is list scheduling: whenever resources are free, the longest cell that fits into them starts. There
are three exceptions. A cell that is documented to hang uses no processor while it waits for its deadline, so such cells
start first and need no slot. The founding failures come next, since a newcomer waits for them. And the longest cell, if
it does not fit, is overtaken a limited number of times: then the resources that it lacks are reserved for it, so a
large cell does not starve.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from repros.engine.inventory import Inventory
from repros.model import Cell, Device

FOUNDING = frozenset(f"RPR-{number:04}" for number in range(1, 6))
"""Ids of the failures with which the catalogue began, which the README names."""
SECONDS = 4.0
"""Assumed duration of a cell that has never been timed."""
_RUNNER = 0.05
"""Seconds of processor time that the runner uses to start, supervise and judge a cell."""
_OVERTAKEN = 8
"""How often the longest cell may be overtaken if it does not fit."""
_CORE_PARTS = 8
"""Granularity of cores: 1/8. Cells with equal amounts then wait in one queue."""


class _Kind(NamedTuple):
    """Estimated needs of cells that are launched warm, or cold."""

    memory: int
    """Bytes for each process."""
    cores: float
    """Average cores in use by a cell, if that was not measured."""
    fewest: float
    """Lower bound of the measured cores: on a machine under load, a cell appears to be waiting."""


_WARM = _Kind(150 * 2**20, 1 / 2, 1 / 3)
"""Forked from a server that has imported the libraries."""
_COLD = _Kind(450 * 2**20, 1.0, 2 / 3)
"""Each process imports them itself."""


@dataclass(frozen=True)
class Timing:
    """How long a cell took when it was last measured."""

    seconds: float
    processor: float | None = None
    """Processor time of all its processes in seconds; None if it was not measured."""


@dataclass(frozen=True)
class ResourceNeeds:
    """The resources that a cell needs, and for how long."""

    processes: int
    cores: float
    """Average cores in use."""
    memory: int
    """Bytes."""
    gpus: int = 0
    waits: bool = False
    """Whether it is documented to hang, and so uses no processor until it ends."""
    seconds: float = SECONDS
    is_founding: bool = False
    """Whether it is a cell of a founding failure."""


def needs(cell: Cell, timing: Timing | None = None, *, cold: bool | None = None) -> ResourceNeeds:
    """Return the needs of a cell.

    Args:
        cell: the cell.
        timing: its last measured duration; None if it has never been timed.
        cold: whether each process imports the libraries itself; by default as the repro says.
    """
    kind = _COLD if (cell.strategy in cell.repro.cold if cold is None else cold) else _WARM
    return ResourceNeeds(
        processes=cell.processes,
        cores=_cores(kind, timing),
        memory=cell.processes * kind.memory,
        gpus=cell.processes if cell.device is Device.CUDA else 0,
        waits=cell.is_documented_hang,
        seconds=timing.seconds if timing else SECONDS,
        is_founding=cell.repro.id in FOUNDING,
    )


def _cores(kind: _Kind, timing: Timing | None) -> float:
    if timing is None or timing.processor is None or timing.seconds <= 0:
        return kind.cores
    return max(kind.fewest, (timing.processor + _RUNNER) / timing.seconds)


class _Rank(NamedTuple):
    """The place of a cell in the order of starts: the smallest comes first."""

    has_slot: bool
    is_later: bool
    seconds: float
    number: int


class Start(NamedTuple):
    """A cell that starts, by its number, and the GPUs assigned to it."""

    number: int
    gpus: tuple[str, ...]


class _Amount(NamedTuple):
    """An amount of the machine's resources: those that a cell takes, or those that are free."""

    slots: float
    """Cores, or the cells of `--jobs`."""
    hangs: float
    """Cells that are documented to hang, which need no slot."""
    memory: float
    gpus: float

    def fits(self, free: _Amount) -> bool:
        """Return whether all of it is free; written out, since it is called most often."""
        slots, hangs, memory, gpus = free
        return self.slots <= slots and self.gpus <= gpus and self.memory <= memory and self.hangs <= hangs

    def lacking(self, free: _Amount) -> list[int]:
        """Return the indices of the resources that are not free."""
        return [index for index, (wanted, left) in enumerate(zip(self, free, strict=True)) if wanted > left]


class Schedule:
    """The waiting cells, the running cells and the free resources; a step takes microseconds, whatever their number."""

    def __init__(
        self,
        cells: Mapping[int, ResourceNeeds],
        inventory: Inventory,
        *,
        jobs: int | None = None,
        share_gpus: bool = False,
    ) -> None:
        """Queue the cells.

        Args:
            cells: the needs of each cell, by a number that identifies it.
            inventory: the shared resources. A cell that needs more than all of them runs when everything else is free.
            jobs: number of cells that run at once, whatever cores they need; None: as many as the cores allow. With 1
                they run in the order given.
            share_gpus: whether several cells may run on one GPU at once.
        """
        slots = jobs or max(1, int(inventory.cores * _CORE_PARTS)) / _CORE_PARTS
        self._total = _Amount(slots, 0 if jobs == 1 else max(1, int(slots)), inventory.memory, len(inventory.gpus))
        self._jobs, self._share = jobs, share_gpus
        self._free = self._total
        self._cells: dict[int, ResourceNeeds] = {}
        self._users = dict.fromkeys(inventory.gpus, 0)
        self._running: dict[int, tuple[_Amount, tuple[str, ...]]] = {}
        self._queues: dict[_Amount, list[_Rank]] = {}
        self._heads: list[tuple[_Rank, _Amount]] = []
        self._overtaken: tuple[_Rank | None, int] = None, 0
        self.add(cells)

    def add(self, cells: Mapping[int, ResourceNeeds]) -> None:
        """Queue more cells, by numbers that none has had."""
        self._cells |= cells
        for number, cell in cells.items():
            heapq.heappush(self._queues.setdefault(self._amount(cell), []), self._rank(number, cell))
        self._heads = sorted((queue[0], amount) for amount, queue in self._queues.items() if queue)

    def _rank(self, number: int, cell: ResourceNeeds) -> _Rank:
        if self._jobs == 1:
            return _Rank(False, False, 0.0, number)
        return _Rank(not cell.waits, not cell.is_founding, -cell.seconds, number)

    def _amount(self, cell: ResourceNeeds) -> _Amount:
        """Return the resources that a cell takes, at most all of the machine's."""
        is_hang = cell.waits and self._total.hangs > 0
        slots = 0.0 if is_hang else 1.0 if self._jobs else max(1, round(cell.cores * _CORE_PARTS)) / _CORE_PARTS
        wanted = _Amount(slots, int(is_hang), cell.memory, 0 if self._share else cell.gpus)
        return _Amount(*map(min, wanted, self._total))

    def start(self) -> Start | None:
        """Start the next cell that fits, and return it; None if none fits now, or none waits."""
        # Example: 4 slots, of which A (4 slots, 60 s) needs all, 20 cells B to U (1 slot, 10 s each), in this order. V
        # already runs on one slot, so A does not fit: it lacks slots. B, C and D fit, take slots, and so overtake A,
        # which counts 1, 2, 3. Whenever one of them ends, another overtakes A; without a limit A would start last, and
        # run alone for its 60 s. After the 8th time slots are reserved for A: a cell that takes any does not start,
        # even if it fits, while one that only needs a GPU still does. The running cells end, A starts, and the count
        # begins anew for the cell that is then the first that does not fit.
        reserved: list[int] = []
        blocked: _Rank | None = None
        missing: list[int] = []
        for index, (rank, amount) in enumerate(self._heads):
            if amount.fits(self._free) and not any(amount[resource] for resource in reserved):
                if any(amount[resource] for resource in missing):
                    self._overtaken = blocked, self._times_overtaken(blocked) + 1
                return self._take(index)
            if blocked is None and not amount.hangs:
                blocked, missing = rank, amount.lacking(self._free)
                reserved = missing if self._times_overtaken(rank) >= _OVERTAKEN else []
        return None

    def _times_overtaken(self, rank: _Rank | None) -> int:
        overtaken, times = self._overtaken
        return times if rank == overtaken else 0

    def _take(self, index: int) -> Start:
        _, amount = self._heads.pop(index)
        queue = self._queues[amount]
        number = heapq.heappop(queue).number
        if queue:
            bisect.insort(self._heads, (queue[0], amount))
        self._free = _Amount(*(free - taken for free, taken in zip(self._free, amount, strict=True)))
        gpus = tuple(sorted(self._users, key=self._users.__getitem__)[: self._cells[number].gpus])
        for gpu in gpus:
            self._users[gpu] += 1
        self._running[number] = amount, gpus
        return Start(number, gpus)

    def end(self, number: int) -> None:
        """Free the resources of a running cell."""
        amount, gpus = self._running.pop(number)
        self._free = _Amount(*(free + taken for free, taken in zip(self._free, amount, strict=True)))
        for gpu in gpus:
            self._users[gpu] -= 1


def simulate(
    cells: Mapping[int, ResourceNeeds], inventory: Inventory, *, jobs: int | None = None, share_gpus: bool = False
) -> float:
    """Return the seconds until the last cell ends, if each takes the seconds in its needs."""
    schedule = Schedule(cells, inventory, jobs=jobs, share_gpus=share_gpus)
    now, running = 0.0, list[tuple[float, int]]()
    while True:
        while start := schedule.start():
            heapq.heappush(running, (now + cells[start.number].seconds, start.number))
        if not running:
            return now
        now, number = heapq.heappop(running)
        schedule.end(number)
