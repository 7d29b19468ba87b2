"""The dispatch of cells to nodes: it collects results, and reschedules the cells of a dead node once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import ray
from ray.exceptions import RayError, TaskUnschedulableError

from repros.cluster.node_agent import NodeResult, RunSettings, Site, WorkItem
from repros.cluster.placement import CellTask, NodeResources, Placement
from repros.cluster.reservation import run_reserved
from repros.cluster.workers import NodeWorker, Ref, WorkerPool, first_line, pending_status
from repros.model import Environment

_WAIT = 0.5
"""Seconds between checks for late cells."""
_MAX_ATTEMPTS = 2
"""Maximum attempts of a cell that is lost each time."""
_CONFIRMATIONS = 2
"""Status reports of a node after a loss before a cell starts there; the first may be older than the loss."""
_START_TIMEOUT = 15.0
"""Timeout, in seconds, for Ray to start a cell, after which it is placed on another node if possible."""
_RESULT_TIMEOUT = 60.0
"""Timeout, in seconds, for the transfer of a result from its node."""
_NO_NODE_TIMEOUT = 120.0
"""Seconds that a run without an eligible node waits for one."""


@dataclass(frozen=True)
class LostTask:
    """A cell without a result, and the reason."""

    reason: str


@dataclass(frozen=True)
class MissingEnvironment:
    """A cell whose environment could not be made on any node."""

    environment: Environment


TaskOutcome = NodeResult | LostTask | MissingEnvironment


@dataclass(eq=False)
class _Attempt:
    """One attempt to run a cell on a node."""

    ticket: str
    task: CellTask
    worker: NodeWorker
    result: Ref
    since: float
    """Time of placement, or, once begun, of the last status report with it."""
    has_begun: bool = False
    """Whether a status report of its node had it."""
    moved: bool = False
    """Whether it was cancelled because Ray did not start it."""


class Dispatch:
    """The dispatch of one run's cells."""

    def __init__(
        self,
        worker_pool: WorkerPool,
        cells: Sequence[CellTask],
        sites: Mapping[str, tuple[Site, Sequence[WorkItem]]],
        settings: RunSettings,
        *,
        jobs: int | None,
        report_progress: Callable[[str], None],
        started: Callable[[CellTask], None],
    ) -> None:
        """Initialise without starting cells.

        Args:
            worker_pool: the processes on the nodes.
            cells: the cells to run.
            sites: each site with its work items, in the order of its cells.
            settings: how to run the cells.
            jobs: maximum number of concurrent cells; None: limited by resources only.
            report_progress: receives lines of progress.
            started: receives each placed cell.
        """
        self._worker_pool, self._sites, self._settings, self._max_running = worker_pool, sites, settings, jobs
        self._report_progress, self._started = report_progress, started
        cells_by_site = ([task for task in cells if task.site == site] for site in sites)
        self._indices = {task.number: index for site_cells in cells_by_site for index, task in enumerate(site_cells)}
        self._placement = Placement(cells)
        self._reserved_run = ray.remote(run_reserved)
        self._pending: dict[Ref, Callable[[Ref], Iterator[tuple[CellTask, TaskOutcome]]]] = {}
        self._attempts: dict[str, _Attempt] = {}
        self._open_sites = set(sites)
        self._releasing = 0
        self._last_served = time.monotonic()

    def outcomes(self, tickets: Iterator[str]) -> Iterator[tuple[CellTask, TaskOutcome]]:
        """Yield the outcome of each cell as it ends; `tickets` names the attempts."""
        for worker in self._worker_pool.workers.values():
            self._add_worker(worker)
        while self._placement.waiting or self._attempts or self._releasing:
            self._start_ready(tickets)
            yield from self._collect(_WAIT)
            yield from self._poll()

    def collect_finished(self) -> Iterator[tuple[CellTask, TaskOutcome]]:
        """Yield the available outcomes without waiting."""
        return self._collect(0)

    def _add_worker(self, worker: NodeWorker) -> None:
        """Request the sites that need no installation on a worker's node; its response makes the node eligible."""
        sites = [site for site, _ in self._sites.values()]
        self._pending[worker.process.find_ready.remote(sites)] = partial(self._on_worker_ready, worker)

    def _on_worker_ready(self, worker: NodeWorker, ref: Ref) -> Iterator[tuple[CellTask, TaskOutcome]]:
        with contextlib.suppress(RayError):  # its status report shows that it is lost
            on_disk = frozenset(ray.get(ref))
            if self._worker_pool.workers.get(worker.id) is not worker:
                return
            self._placement.nodes[worker.id] = NodeResources(
                worker.id, worker.cores, worker.gpus, worker.memory, on_disk
            )
        yield from ()

    def _start_ready(self, tickets: Iterator[str]) -> None:
        while making := self._placement.make():
            node, name = making
            site, work_items = self._sites[name]
            ref = self._worker_pool.workers[node.node_id].process.prepare.remote(site, work_items, self._settings)
            self._pending[ref] = partial(self._on_made, node, name)
        while self._max_running is None or len(self._attempts) < self._max_running:
            if (start := self._placement.start()) is None:
                return
            node, task = start
            self._start(next(tickets), task, node)

    def _on_made(self, node: NodeResources, site: str, ref: Ref) -> Iterator[tuple[CellTask, TaskOutcome]]:
        if self._placement.nodes.get(node.node_id) is not node:  # the node was lost meanwhile
            return
        try:
            broken = ray.get(ref)
        except RayError as error:
            text = f"the environment of {site} could not be made there: {first_line(error)}"
            broken = Environment(site, Path(), "", {}, broken=text, stack=site)
        self._placement.made(node, failed=broken is not None)
        if broken is not None:
            self._report_progress(
                f"no cells of {site} on {self._worker_pool.workers[node.node_id].name}: {broken.broken}"
            )
            for task in self._placement.take_unplaceable(site):
                yield task, MissingEnvironment(broken)

    def _start(self, ticket: str, task: CellTask, node: NodeResources) -> None:
        worker = self._worker_pool.workers[node.node_id]
        cores, memory, gpus, _ = node.demand(task.needs)
        options = {"num_cpus": cores, "num_gpus": gpus, "memory": memory or None, "max_retries": 0}
        reservation = self._reserved_run.options(**options, scheduling_strategy=worker.pin())
        ref = reservation.remote(worker.process, "run", ticket, task.site, self._indices[task.number])
        self._attempts[ticket] = _Attempt(ticket, task, worker, ref, time.monotonic())
        self._pending[ref] = partial(self._on_outcome, ticket)
        self._started(task)

    def _on_outcome(self, ticket: str, ref: Ref) -> Iterator[tuple[CellTask, TaskOutcome]]:
        attempt = self._attempts.pop(ticket)
        try:
            result: NodeResult = ray.get(ref)
        except (RayError, OSError) as error:
            yield from self._on_lost(attempt, error)
        else:
            self._placement.end(attempt.task)
            yield attempt.task, result

    def _on_lost(self, attempt: _Attempt, error: Exception) -> Iterator[tuple[CellTask, TaskOutcome]]:
        attempt.worker.process.end.remote(attempt.ticket)
        if node := self._placement.nodes.get(attempt.worker.id):
            node.unconfirmed = _CONFIRMATIONS
        if attempt.moved or isinstance(error, TaskUnschedulableError):  # it had not begun
            self._placement.requeue(attempt.task)
            return
        attempt.task.lost_on.append(attempt.worker.id)
        why = f"its process on the node {attempt.worker.name} is lost ({first_line(error)})"
        if len(attempt.task.lost_on) < _MAX_ATTEMPTS:
            self._report_progress(f"once more: a cell, as {why}")
            self._placement.requeue(attempt.task)
        else:
            self._placement.end(attempt.task)
            yield attempt.task, LostTask(f"{why}, and so was another before it")

    def _collect(self, seconds: float) -> Iterator[tuple[CellTask, TaskOutcome]]:
        """Yield available outcomes; wait up to a timeout, in seconds, for the first."""
        status = pending_status(self._worker_pool.workers.values())
        refs = [*self._pending, *status]
        if not refs:
            time.sleep(seconds)
            return
        ray.wait(refs, num_returns=1, timeout=seconds)
        done, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        for ref in done:
            if ref in status:
                self._receive(status[ref])
            else:
                yield from self._pending.pop(ref)(ref)

    def _receive(self, worker: NodeWorker) -> None:
        status = self._worker_pool.receive(worker)
        if isinstance(status, str):
            self._on_worker_lost(worker, status)
            return
        for line in status.lines:
            self._report_progress(f"{worker.name}: {line}")
        if (node := self._placement.nodes.get(worker.id)) and node.unconfirmed:
            node.unconfirmed -= 1
        for attempt in self._attempts.values():
            if attempt.ticket in status.running:
                attempt.has_begun, attempt.since = True, worker.last_seen
                self._note_busy(worker, busy=False)

    def _on_worker_lost(self, worker: NodeWorker, why: str) -> None:
        self._report_progress(f"lost: {worker.name}: {why}")
        self._placement.nodes.pop(worker.id, None)

    def _poll(self) -> Iterator[tuple[CellTask, TaskOutcome]]:
        joined, lost = self._worker_pool.poll()
        for worker in joined:
            self._report_progress(f"joined: {worker.name}")
            self._add_worker(worker)
        for worker, why in lost:
            self._on_worker_lost(worker, why)
        self._reschedule_late()
        self._release()
        unplaceable = self._placement.unplaceable()
        if not unplaceable:
            self._last_served = time.monotonic()
        elif time.monotonic() - self._last_served > _NO_NODE_TIMEOUT:
            for task in unplaceable:
                self._placement.take(task)
                yield task, LostTask(f"no node of the cluster that can run it was left for {_NO_NODE_TIMEOUT:.0f} s")

    def _reschedule_late(self) -> None:
        """Cancel cells that Ray does not start although another node could, and those whose result does not arrive."""
        now = time.monotonic()
        for attempt in self._attempts.values():
            if attempt.moved:
                continue
            starved = (
                not attempt.has_begun
                and now - attempt.since > _START_TIMEOUT
                and self._placement.has_other(attempt.task)
            )
            overdue = attempt.has_begun and now - attempt.since > _RESULT_TIMEOUT
            if starved or overdue:
                attempt.moved = starved
                self._note_busy(attempt.worker, busy=True)
                attempt.worker.process.end.remote(attempt.ticket)
                ray.cancel(attempt.result, force=overdue)

    def _note_busy(self, worker: NodeWorker, *, busy: bool) -> None:
        if node := self._placement.nodes.get(worker.id):
            node.busy = busy

    def _release(self) -> None:
        """Release the sites without remaining cells on all nodes."""
        done = self._open_sites - self._placement.unfinished()
        for site in done:
            for node in self._placement.nodes.values():
                if site in node.ready:
                    node.ready.discard(site)
                    worker = self._worker_pool.workers[node.node_id]
                    self._pending[worker.process.release.remote(site)] = partial(self._on_released, worker)
                    self._releasing += 1
        self._open_sites -= done

    def _on_released(self, worker: NodeWorker, ref: Ref) -> Iterator[tuple[CellTask, TaskOutcome]]:
        self._releasing -= 1
        with contextlib.suppress(RayError):
            for line in ray.get(ref):
                self._report_progress(f"{worker.name}: {line}")
        yield from ()
