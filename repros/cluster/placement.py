"""Placement: which node makes which environment, and which cell starts where. No I/O, no clock, no Ray.

A cell goes where its environment is. An environment is made on as many nodes as its cells fill: first where it is on
the disk already. Ray has the last word, since others may use the cluster, too: what is placed here waits on its node
until Ray gives it the processors and GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from repros.engine.schedule import Needs


@dataclass(eq=False)
class Job:
    """A cell, and what became of it so far."""

    number: int
    """Its place in the plan."""
    site: str
    needs: Needs
    tried: list[str] = field(default_factory=list)
    """The nodes that it was lost on."""


@dataclass(eq=False)
class Room:
    """What a node has, and what of it the cells of this run take."""

    node: str
    cores: float
    gpus: int
    memory: int
    on_disk: frozenset[str] = frozenset()
    """The sites that need no installation there."""
    ready: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    """The sites that could not be made there."""
    making: str | None = None
    busy: bool = False
    """Whether Ray did not start what was placed here last: others have its processors."""
    doubts: int = 0
    """How often the node has to be heard of again before anything starts there: something was lost on it."""
    jobs: list[Job] = field(default_factory=list)
    """What runs there."""

    def takes(self, needs: Needs) -> tuple[float, int, int, int]:
        """Return the cores, memory, GPUs and cells beside the processors that a cell takes here, at most all there is.

        A cell that waits takes a place beside the processors, of which there are as many as processors.
        """
        cores = 0.0 if needs.waits else min(needs.cores, self.cores)
        return cores, min(needs.memory, self.memory), needs.gpus, int(needs.waits)

    def fits(self, needs: Needs) -> bool:
        """Return whether a cell can start here now."""
        if self.doubts:
            return False
        total = (self.cores, self.memory, self.gpus, max(1, int(self.cores)))
        taken = [sum(amounts) for amounts in zip(*(self.takes(job.needs) for job in self.jobs), strict=True)]
        wanted = self.takes(needs)
        return all(have - used >= want for have, used, want in zip(total, taken or [0] * 4, wanted, strict=True))


class _Kind(NamedTuple):
    """What decides which nodes a job may run on."""

    site: str
    gpus: int
    tried: tuple[str, ...]


def _kind(job: Job) -> _Kind:
    return _Kind(job.site, job.needs.gpus, tuple(job.tried))


class Placement:
    """The waiting cells, and the nodes."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        """Queue the jobs: first those that only wait, then those with GPUs, then the longest."""
        self._waiting = sorted(jobs, key=_urgency)
        self.rooms: dict[str, Room] = {}

    @property
    def waiting(self) -> Sequence[Job]:
        """The jobs that run nowhere, in the order in which they will start."""
        return self._waiting

    def unfinished(self) -> set[str]:
        """Return the sites that still have jobs."""
        running = (job for room in self.rooms.values() for job in room.jobs)
        return {job.site for job in (*self._waiting, *running)}

    def start(self) -> tuple[Room, Job] | None:
        """Start a job, and return it with its node; None if none fits now."""
        blocked: set[tuple[_Kind, Needs]] = set()
        for job in self._waiting:
            kind = _kind(job)
            if (kind, job.needs) in blocked:
                continue
            fitting = [room for room in self._allowed(kind) if job.site in room.ready and room.fits(job.needs)]
            if fitting:
                room = max(fitting, key=lambda each: (not each.busy, each.cores - len(each.jobs)))
                self._waiting.remove(job)
                room.jobs.append(job)
                return room, job
            blocked.add((kind, job.needs))
        return None

    def _allowed(self, kind: _Kind) -> list[Room]:
        """Return the nodes for jobs of a kind: not those that they were lost on, if there is another."""
        able = [room for room in self.rooms.values() if kind.gpus <= room.gpus and kind.site not in room.failed]
        return [room for room in able if room.node not in kind.tried] or able

    def make(self) -> tuple[Room, str] | None:
        """Choose a node that soon has nothing to run, and the site to make ready there; None if there is no need."""
        kinds = Counter(map(_kind, self._waiting))
        allowed = {kind: self._allowed(kind) for kind in kinds}
        for room in self.rooms.values():
            here = {kind: number for kind, number in kinds.items() if room in allowed[kind]}
            soon = sum(number for kind, number in here.items() if kind.site in room.ready)
            if room.making is not None or soon > room.cores:
                continue
            worth: dict[str, tuple[bool, float]] = {}
            for kind, number in here.items():
                serving = [each for each in allowed[kind] if kind.site in each.ready or kind.site == each.making]
                if kind.site not in room.ready and number > sum(each.cores for each in serving):
                    value = kind.site in room.on_disk, number / (1 + len(serving))
                    worth[kind.site] = max(value, worth.get(kind.site, value))
            if worth:
                room.making = max(worth, key=worth.__getitem__)
                return room, room.making
        return None

    def made(self, room: Room, *, failed: bool) -> None:
        """Note that the site that a node made is ready, or cannot be made there."""
        assert room.making is not None
        (room.failed if failed else room.ready).add(room.making)
        room.making = None

    def end(self, job: Job) -> None:
        """Free what a job had."""
        for room in self.rooms.values():
            if job in room.jobs:
                room.jobs.remove(job)

    def requeue(self, job: Job) -> None:
        """Let a job that has not been run start again, before all others."""
        self.end(job)
        self._waiting.insert(0, job)

    def has_other(self, job: Job) -> bool:
        """Return whether another node than a job's could start it now."""
        rooms = (room for room in self._allowed(_kind(job)) if job not in room.jobs)
        return any(job.site in room.ready and room.fits(job.needs) for room in rooms)

    def homeless(self) -> list[Job]:
        """Return the waiting jobs that no node can run, as things are."""
        allowed = {kind: self._allowed(kind) for kind in set(map(_kind, self._waiting))}
        return [job for job in self._waiting if not allowed[_kind(job)]]

    def take(self, job: Job) -> None:
        """Remove a waiting job."""
        self._waiting.remove(job)

    def take_impossible(self, site: str) -> list[Job]:
        """Remove and return the jobs of a site that cannot be made on any node that could run them."""
        lost = [job for job in self.homeless() if job.site == site]
        self._waiting = [job for job in self._waiting if job not in lost]
        return lost


def _urgency(job: Job) -> tuple[bool, int, float]:
    return not job.needs.waits, -job.needs.gpus, -job.needs.seconds
