"""The dispatch: cells go out to the nodes, outcomes come back; what a dead node had is asked for once more."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import ray
from ray.exceptions import RayError, TaskUnschedulableError

from repros.cluster.crew import Crew, Member, Ref, first_line, pending_news
from repros.cluster.lease import run_leased
from repros.cluster.node import Orders, Outcome, Site, Work
from repros.cluster.placement import Job, Placement, Room
from repros.model import Environment

_WAIT = 0.5
"""Seconds between two looks at what is late."""
_TRIES = 2
"""How often a cell is run that is lost each time."""
_DOUBTS = 2
"""News of a node that must come after a loss before anything starts there: the first may be older than the loss."""
_STARVED = 15.0
"""Seconds that Ray may take to start a cell before it is placed again, where another node has room."""
_OVERDUE = 60.0
"""Seconds that an outcome may take to come once its node has it."""
_ALONE = 120.0
"""Seconds that a run waits for a node once it has none."""


@dataclass(frozen=True)
class Lost:
    """A cell that gave no outcome, and why."""

    reason: str


@dataclass(frozen=True)
class Impossible:
    """A cell whose environment could be made on no node."""

    environment: Environment


Finding = Outcome | Lost | Impossible


@dataclass(eq=False)
class _Try:
    """One try of a job on a node."""

    ticket: str
    job: Job
    member: Member
    outcome: Ref
    since: float
    """When it was placed; once it has been seen there, when it was seen last."""
    seen: bool = False
    """Whether its node has begun it."""
    moved: bool = False
    """Whether it is taken back, as Ray does not start it."""


class Dispatch:
    """One run's cells on their way."""

    def __init__(
        self,
        crew: Crew,
        cells: Sequence[Job],
        sites: Mapping[str, tuple[Site, Sequence[Work]]],
        orders: Orders,
        *,
        jobs: int | None,
        report_progress: Callable[[str], None],
        started: Callable[[Job], None],
    ) -> None:
        """Take the cells, and what is to be done with them.

        Args:
            crew: the processes on the nodes.
            cells: what to run.
            sites: each site with what there is to run on it, in the order of its cells.
            orders: how.
            jobs: the most cells that run side by side; None: as many as have room.
            report_progress: receives lines of progress.
            started: receives each cell that is placed.
        """
        self._crew, self._sites, self._orders, self._most = crew, sites, orders, jobs
        self._report_progress, self._started = report_progress, started
        of_sites = ([job for job in cells if job.site == site] for site in sites)
        self._numbers = {job.number: place for of_site in of_sites for place, job in enumerate(of_site)}
        self._placement = Placement(cells)
        self._lease = ray.remote(run_leased)
        self._pending: dict[Ref, Callable[[Ref], Iterator[tuple[Job, Finding]]]] = {}
        self._tries: dict[str, _Try] = {}
        self._open = set(sites)
        self._releasing = 0
        self._served = time.monotonic()

    def findings(self, tickets: Iterator[str]) -> Iterator[tuple[Job, Finding]]:
        """Yield what is found of each job, as it comes; `tickets` names the tries."""
        for member in self._crew.members.values():
            self._join(member)
        while self._placement.waiting or self._tries or self._releasing:
            self._place(tickets)
            yield from self._settle(_WAIT)
            yield from self._look()

    def settle_now(self) -> Iterator[tuple[Job, Finding]]:
        """Yield what has come already."""
        return self._settle(0)

    def _join(self, member: Member) -> None:
        """Ask a member which sites need no installation there; once it answers, it takes part."""
        sites = [site for site, _ in self._sites.values()]
        self._pending[member.process.find_ready.remote(sites)] = partial(self._on_joined, member)

    def _on_joined(self, member: Member, ref: Ref) -> Iterator[tuple[Job, Finding]]:
        with contextlib.suppress(RayError):  # its news tell that it is lost
            on_disk = frozenset(ray.get(ref))
            if self._crew.members.get(member.id) is not member:
                return
            self._placement.rooms[member.id] = Room(member.id, member.cores, member.gpus, member.memory, on_disk)
        yield from ()

    def _place(self, tickets: Iterator[str]) -> None:
        while making := self._placement.make():
            room, name = making
            site, works = self._sites[name]
            ref = self._crew.members[room.node].process.prepare.remote(site, works, self._orders)
            self._pending[ref] = partial(self._on_made, room, name)
        while self._most is None or len(self._tries) < self._most:
            if (start := self._placement.start()) is None:
                return
            room, job = start
            self._start(next(tickets), job, room)

    def _on_made(self, room: Room, site: str, ref: Ref) -> Iterator[tuple[Job, Finding]]:
        if self._placement.rooms.get(room.node) is not room:  # the node was lost meanwhile
            return
        try:
            broken = ray.get(ref)
        except RayError as error:
            text = f"the environment of {site} could not be made there: {first_line(error)}"
            broken = Environment(site, Path(), "", {}, broken=text, stack=site)
        self._placement.made(room, failed=broken is not None)
        if broken is not None:
            self._report_progress(f"no cells of {site} on {self._crew.members[room.node].name}: {broken.broken}")
            for job in self._placement.take_impossible(site):
                yield job, Impossible(broken)

    def _start(self, ticket: str, job: Job, room: Room) -> None:
        member = self._crew.members[room.node]
        cores, memory, gpus, _ = room.takes(job.needs)
        options = {"num_cpus": cores, "num_gpus": gpus, "memory": memory or None, "max_retries": 0}
        lease = self._lease.options(**options, scheduling_strategy=member.pin())
        ref = lease.remote(member.process, "run", ticket, job.site, self._numbers[job.number])
        self._tries[ticket] = _Try(ticket, job, member, ref, time.monotonic())
        self._pending[ref] = partial(self._on_outcome, ticket)
        self._started(job)

    def _on_outcome(self, ticket: str, ref: Ref) -> Iterator[tuple[Job, Finding]]:
        tried = self._tries.pop(ticket)
        try:
            outcome: Outcome = ray.get(ref)
        except (RayError, OSError) as error:
            yield from self._on_lost(tried, error)
        else:
            self._placement.end(tried.job)
            yield tried.job, outcome

    def _on_lost(self, tried: _Try, error: Exception) -> Iterator[tuple[Job, Finding]]:
        tried.member.process.end.remote(tried.ticket)
        if room := self._placement.rooms.get(tried.member.id):
            room.doubts = _DOUBTS
        if tried.moved or isinstance(error, TaskUnschedulableError):  # it has not begun
            self._placement.requeue(tried.job)
            return
        tried.job.tried.append(tried.member.id)
        why = f"its process on the node {tried.member.name} is lost ({first_line(error)})"
        if len(tried.job.tried) < _TRIES:
            self._report_progress(f"once more: a cell, as {why}")
            self._placement.requeue(tried.job)
        else:
            self._placement.end(tried.job)
            yield tried.job, Lost(f"{why}, and so was another before it")

    def _settle(self, seconds: float) -> Iterator[tuple[Job, Finding]]:
        """Take what has come, or comes within so many seconds."""
        news = pending_news(self._crew.members.values())
        refs = [*self._pending, *news]
        if not refs:
            time.sleep(seconds)
            return
        ray.wait(refs, num_returns=1, timeout=seconds)
        done, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        for ref in done:
            if ref in news:
                self._hear(news[ref])
            else:
                yield from self._pending.pop(ref)(ref)

    def _hear(self, member: Member) -> None:
        news = self._crew.hear(member)
        if isinstance(news, str):
            self._miss(member, news)
            return
        for line in news.lines:
            self._report_progress(f"{member.name}: {line}")
        if (room := self._placement.rooms.get(member.id)) and room.doubts:
            room.doubts -= 1
        for tried in self._tries.values():
            if tried.ticket in news.running:
                tried.seen, tried.since = True, member.heard
                self._note_busy(member, busy=False)

    def _miss(self, member: Member, why: str) -> None:
        self._report_progress(f"lost: {member.name}: {why}")
        self._placement.rooms.pop(member.id, None)

    def _look(self) -> Iterator[tuple[Job, Finding]]:
        joined, gone = self._crew.look()
        for member in joined:
            self._report_progress(f"joined: {member.name}")
            self._join(member)
        for member, why in gone:
            self._miss(member, why)
        self._move_late()
        self._release()
        homeless = self._placement.homeless()
        if not homeless:
            self._served = time.monotonic()
        elif time.monotonic() - self._served > _ALONE:
            for job in homeless:
                self._placement.take(job)
                yield job, Lost(f"no node of the cluster that can run it was left for {_ALONE:.0f} s")

    def _move_late(self) -> None:
        """Take back what Ray does not start although another node could, and what does not come although it ended."""
        now = time.monotonic()
        for tried in self._tries.values():
            if tried.moved:
                continue
            starved = not tried.seen and now - tried.since > _STARVED and self._placement.has_other(tried.job)
            overdue = tried.seen and now - tried.since > _OVERDUE
            if starved or overdue:
                tried.moved = starved
                self._note_busy(tried.member, busy=True)
                tried.member.process.end.remote(tried.ticket)
                ray.cancel(tried.outcome, force=overdue)

    def _note_busy(self, member: Member, *, busy: bool) -> None:
        if room := self._placement.rooms.get(member.id):
            room.busy = busy

    def _release(self) -> None:
        """Let the nodes leave the sites whose jobs are all done."""
        done = self._open - self._placement.unfinished()
        for site in done:
            for room in self._placement.rooms.values():
                if site in room.ready:
                    room.ready.discard(site)
                    member = self._crew.members[room.node]
                    self._pending[member.process.release.remote(site)] = partial(self._on_released, member)
                    self._releasing += 1
        self._open -= done

    def _on_released(self, member: Member, ref: Ref) -> Iterator[tuple[Job, Finding]]:
        self._releasing -= 1
        with contextlib.suppress(RayError):
            for line in ray.get(ref):
                self._report_progress(f"{member.name}: {line}")
        yield from ()
