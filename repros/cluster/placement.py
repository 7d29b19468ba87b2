"""Placement of environments and cells on nodes; no I/O, no clock, no Ray.

A cell is placed on a node with its environment. An environment is made on as many nodes as its cells can use, first on
those that have it on disk. Since others may use the cluster, a placed cell waits on its node until Ray grants it CPUs
and GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from repros.engine.schedule import ResourceNeeds


@dataclass(eq=False)
class CellTask:
    """A cell to place, with the nodes on which it was lost."""

    number: int
    """Index in the plan."""
    site: str
    needs: ResourceNeeds
    lost_on: list[str] = field(default_factory=list)


@dataclass(eq=False)
class NodeResources:
    """The resources of a node, and the cells of this run that use them."""

    node_id: str
    cores: float
    gpus: int
    memory: int
    on_disk: frozenset[str] = frozenset()
    """Sites that need no installation on the node."""
    ready: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    """Sites whose environment could not be made on the node."""
    making: str | None = None
    busy: bool = False
    """Whether Ray did not start the last placed cell, since others use the CPUs."""
    unconfirmed: int = 0
    """Number of status reports required before a cell starts there, after a loss on the node."""
    tasks: list[CellTask] = field(default_factory=list)
    """Running cells."""

    def demand(self, needs: ResourceNeeds) -> tuple[float, int, int, int]:
        """Return the cores, bytes of memory, GPUs and waiting slots of a cell, at most those of the node.

        A cell that only waits takes no core but a waiting slot; a node has as many waiting slots as cores.
        """
        cores = 0.0 if needs.waits else min(needs.cores, self.cores)
        return cores, min(needs.memory, self.memory), needs.gpus, int(needs.waits)

    def fits(self, needs: ResourceNeeds) -> bool:
        """Return whether a cell can start on the node now."""
        if self.unconfirmed:
            return False
        total = (self.cores, self.memory, self.gpus, max(1, int(self.cores)))
        taken = [sum(amounts) for amounts in zip(*(self.demand(task.needs) for task in self.tasks), strict=True)]
        wanted = self.demand(needs)
        return all(have - used >= want for have, used, want in zip(total, taken or [0] * 4, wanted, strict=True))


class _Eligibility(NamedTuple):
    """The properties of a cell that determine its eligible nodes."""

    site: str
    gpus: int
    lost_on: tuple[str, ...]


def _eligibility(task: CellTask) -> _Eligibility:
    return _Eligibility(task.site, task.needs.gpus, tuple(task.lost_on))


class Placement:
    """The waiting cells, and the nodes."""

    def __init__(self, tasks: Iterable[CellTask]) -> None:
        """Queue the cells: first those that only wait, then those with GPUs, then the longest."""
        self._waiting = sorted(tasks, key=_urgency)
        self.nodes: dict[str, NodeResources] = {}

    @property
    def waiting(self) -> Sequence[CellTask]:
        """Waiting cells in order."""
        return self._waiting

    def unfinished(self) -> set[str]:
        """Return the sites of waiting and running cells."""
        running = (task for node in self.nodes.values() for task in node.tasks)
        return {task.site for task in (*self._waiting, *running)}

    def start(self) -> tuple[NodeResources, CellTask] | None:
        """Start a cell, and return it with its node; None if none fits now."""
        blocked: set[tuple[_Eligibility, ResourceNeeds]] = set()
        for task in self._waiting:
            eligibility = _eligibility(task)
            if (eligibility, task.needs) in blocked:
                continue
            fitting = [node for node in self._allowed(eligibility) if task.site in node.ready and node.fits(task.needs)]
            if fitting:
                node = max(fitting, key=lambda node: (not node.busy, node.cores - len(node.tasks)))
                self._waiting.remove(task)
                node.tasks.append(task)
                return node, task
            blocked.add((eligibility, task.needs))
        return None

    def _allowed(self, eligibility: _Eligibility) -> list[NodeResources]:
        """Return the eligible nodes, without those on which the cell was lost if there are others."""
        capable = [
            node
            for node in self.nodes.values()
            if eligibility.gpus <= node.gpus and eligibility.site not in node.failed
        ]
        return [node for node in capable if node.node_id not in eligibility.lost_on] or capable

    def make(self) -> tuple[NodeResources, str] | None:
        """Choose a node that is about to idle, and the site to prepare there; None if there is no need."""
        waiting_by_eligibility = Counter(map(_eligibility, self._waiting))
        allowed = {eligibility: self._allowed(eligibility) for eligibility in waiting_by_eligibility}
        for node in self.nodes.values():
            runnable = {
                eligibility: number
                for eligibility, number in waiting_by_eligibility.items()
                if node in allowed[eligibility]
            }
            runnable_soon = sum(number for eligibility, number in runnable.items() if eligibility.site in node.ready)
            if node.making is not None or runnable_soon > node.cores:
                continue
            values: dict[str, tuple[bool, float]] = {}
            for eligibility, number in runnable.items():
                serving = [
                    node
                    for node in allowed[eligibility]
                    if eligibility.site in node.ready or eligibility.site == node.making
                ]
                if eligibility.site not in node.ready and number > sum(node.cores for node in serving):
                    value = eligibility.site in node.on_disk, number / (1 + len(serving))
                    values[eligibility.site] = max(value, values.get(eligibility.site, value))
            if values:
                node.making = max(values, key=values.__getitem__)
                return node, node.making
        return None

    def made(self, node: NodeResources, *, failed: bool) -> None:
        """Record the end of a node's preparation of a site."""
        assert node.making is not None
        (node.failed if failed else node.ready).add(node.making)
        node.making = None

    def end(self, task: CellTask) -> None:
        """Free the resources of a cell."""
        for node in self.nodes.values():
            if task in node.tasks:
                node.tasks.remove(task)

    def requeue(self, task: CellTask) -> None:
        """Return a cell without a result to the front of the queue."""
        self.end(task)
        self._waiting.insert(0, task)

    def has_other(self, task: CellTask) -> bool:
        """Return whether another node could start a running cell now."""
        nodes = (node for node in self._allowed(_eligibility(task)) if task not in node.tasks)
        return any(task.site in node.ready and node.fits(task.needs) for node in nodes)

    def unplaceable(self) -> list[CellTask]:
        """Return the waiting cells without an eligible node."""
        allowed = {eligibility: self._allowed(eligibility) for eligibility in set(map(_eligibility, self._waiting))}
        return [task for task in self._waiting if not allowed[_eligibility(task)]]

    def take(self, task: CellTask) -> None:
        """Remove a waiting cell."""
        self._waiting.remove(task)

    def take_unplaceable(self, site: str) -> list[CellTask]:
        """Remove and return the waiting cells of a site without an eligible node."""
        lost = [task for task in self.unplaceable() if task.site == site]
        self._waiting = [task for task in self._waiting if task not in lost]
        return lost


def _urgency(task: CellTask) -> tuple[bool, int, float]:
    return not task.needs.waits, -task.needs.gpus, -task.needs.seconds
