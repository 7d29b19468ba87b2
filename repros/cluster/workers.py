"""The worker pool: one process of this run on each node, started when a node joins and dropped when it dies."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from repros.cluster.installation import Installation, this_installation
from repros.cluster.node_agent import NodeAgent, StatusReport
from repros.model.errors import ReprosError

Ref = Any
"""A future result of a node: `ray.ObjectRef`, or that of Ray's client."""

_CHECK_TIMEOUT = 90.0
"""Timeout, in seconds, for a node to start a Ray worker and import repros."""
_SILENCE_TIMEOUT = 60.0
"""Seconds without a response after which a process counts as lost: stopped, or its node unreachable."""
_POLL = 1.0
"""Seconds between polls of the cluster's nodes."""
_CLOSE_TIMEOUT = 8.0
"""Timeout, in seconds, for nodes to end their cells."""
_THREADS = 16
"""Threads of a node's process in addition to those of its cells."""
_MAX_CELLS_PER_CORE = 5
"""Maximum concurrent cells per core: each needs a quarter of a core, or only waits."""


@dataclass(eq=False)
class NodeWorker:
    """The process of this run on one node."""

    id: str
    """Ray's id of the node."""
    name: str
    """The node's name in messages."""
    cores: float
    gpus: int
    memory: int
    process: Any
    """Actor handle of its :class:`~repros.cluster.node_agent.NodeAgent`, or of a subclass."""
    status: Ref
    """Its next status report."""
    last_seen: float
    """Time of its last response (`time.monotonic`)."""
    running: frozenset[str] = frozenset()
    """Tickets of its running cells in its last status report."""

    def pin(self) -> NodeAffinitySchedulingStrategy:
        """Return the scheduling strategy for tasks on this node only."""
        return NodeAffinitySchedulingStrategy(self.id, soft=False)


class WorkerPool:
    """The workers of a run, by node id."""

    def __init__(
        self, report_progress: Callable[[str], None], make: type[NodeAgent] = NodeAgent, *arguments: object
    ) -> None:
        """Initialise without starting workers.

        Args:
            report_progress: receives lines of progress.
            make: the class of the process on each node.
            *arguments: arguments of `make`.
        """
        self.workers: dict[str, NodeWorker] = {}
        self._report_progress = report_progress
        self._make, self._arguments = make, arguments
        self._excluded: set[str] = set()
        self._pending_checks: dict[Ref, tuple[Mapping[str, Any], float]] = {}
        self._polled = 0.0

    def start_workers(self) -> None:
        """Start a worker on every node.

        Raises:
            ReprosError: a node lacks repros or has another installation, or no node has a CPU.
        """
        checks = _check_installations(_usable_nodes())
        if checks:
            ray.wait(list(checks), num_returns=len(checks), timeout=_CHECK_TIMEOUT)
        for ref, (node, _) in checks.items():
            if problem := _find_problem(ref):
                raise ReprosError(f"the node {_name(node)} has {problem}; install the same there.")
            if problem is None:
                self._start_worker(node)
        if not self.workers:
            raise ReprosError("no node of the Ray cluster has room for cells; expected one with at least one CPU.")

    def poll(self) -> tuple[list[NodeWorker], list[tuple[NodeWorker, str]]]:
        """Poll the cluster's nodes, at most once a second.

        Returns:
            The new workers, and the lost ones with a reason.
        """
        now = time.monotonic()
        if now - self._polled < _POLL:
            return [], []
        self._polled = now
        try:
            nodes = _usable_nodes()
        except RayError:  # the head is unreachable; if it stays so, Ray ends this process
            return [], []
        lost = [(worker, "the node is gone") for id_, worker in self.workers.items() if id_ not in nodes]
        silent = [
            worker
            for worker in self.workers.values()
            if worker.id in nodes and now - worker.last_seen > _SILENCE_TIMEOUT
        ]
        lost += [
            (worker, f"no answer for {_SILENCE_TIMEOUT:.0f} s") for worker in silent if not _is_ready(worker.status)
        ]
        for worker, _ in lost:
            self.kill(worker)
        known = {*self.workers, *self._excluded, *(node["NodeID"] for node, _ in self._pending_checks.values())}
        self._pending_checks |= _check_installations({id_: node for id_, node in nodes.items() if id_ not in known})
        return [self._start_worker(node) for node in self._admit()], lost

    def _admit(self) -> list[Mapping[str, Any]]:
        """Return the checked nodes with the same installation of repros; report the others."""
        admitted = []
        for ref, (node, asked_at) in list(self._pending_checks.items()):
            if not _is_ready(ref) and time.monotonic() - asked_at < _CHECK_TIMEOUT:
                continue
            del self._pending_checks[ref]
            if problem := _find_problem(ref):
                self._excluded.add(node["NodeID"])
                self._report_progress(f"left out: the node {_name(node)}, which has {problem}")
            elif problem is None:
                admitted.append(node)
        return admitted

    def receive(self, worker: NodeWorker) -> StatusReport | str:
        """Return the available status report of a worker and request the next; or the reason if the worker is lost."""
        try:
            status: StatusReport = ray.get(worker.status)
        except RayError as error:
            self.kill(worker)
            return first_line(error)
        worker.last_seen, worker.running = time.monotonic(), status.running
        worker.status = worker.process.status.remote()
        return status

    def kill(self, worker: NodeWorker) -> None:
        """Kill a worker; its reaper kills its cells."""
        self.workers.pop(worker.id, None)
        with contextlib.suppress(RayError, ValueError):
            ray.kill(worker.process)

    def exclude(self, worker: NodeWorker) -> None:
        """Kill a worker whose node lacks a requirement, and do not start another there."""
        self._excluded.add(worker.id)
        self.kill(worker)

    def close(self) -> None:
        """End the cells of all workers, then kill the workers."""
        ends = [worker.process.close.remote() for worker in self.workers.values()]
        if ends:
            with contextlib.suppress(RayError):
                ray.wait(ends, num_returns=len(ends), timeout=_CLOSE_TIMEOUT)
        for worker in list(self.workers.values()):
            self.kill(worker)

    def _start_worker(self, node: Mapping[str, Any]) -> NodeWorker:
        resources = node["Resources"]
        pin = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        threads = _THREADS + int(resources["CPU"] * _MAX_CELLS_PER_CORE)
        options = {"num_cpus": 0, "max_concurrency": threads, "scheduling_strategy": pin}
        process = ray.remote(self._make).options(**options).remote(*self._arguments)
        worker = NodeWorker(
            id=node["NodeID"],
            name=_name(node),
            cores=resources["CPU"],
            gpus=int(resources.get("GPU", 0)),
            memory=int(resources.get("memory", 0)),
            process=process,
            status=process.status.remote(),
            last_seen=time.monotonic(),
        )
        self.workers[worker.id] = worker
        return worker


def _usable_nodes() -> dict[str, Mapping[str, Any]]:
    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0}


def most_gpus() -> int:
    """Return the maximum number of GPUs of a node."""
    return max((int(node["Resources"].get("GPU", 0)) for node in _usable_nodes().values()), default=0)


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {node['NodeID'][:8]})"


def first_line(error: BaseException) -> str:
    """Return a one-line summary of a Ray error, whose text has many lines."""
    text = str(getattr(error, "cause", None) or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]


def _check_installations(nodes: Mapping[str, Mapping[str, Any]]) -> dict[Ref, tuple[Mapping[str, Any], float]]:
    """Request each node's installation of repros; return the nodes and times of request by future result."""

    def find_installation() -> Installation | str:
        # A local function, which is pickled by value: the node may lack repros.
        try:
            from repros.cluster.installation import this_installation as node_installation  # noqa: PLC0415 - see above
        except ImportError as error:
            return f"no repros ({error})"
        return node_installation()

    installation_task = ray.remote(find_installation)
    requests = {}
    for id_, node in nodes.items():
        pin = NodeAffinitySchedulingStrategy(id_, soft=False)
        ref = installation_task.options(num_cpus=0, max_retries=0, scheduling_strategy=pin).remote()
        requests[ref] = (node, time.monotonic())
    return requests


def _is_ready(ref: Ref) -> bool:
    """Return whether a result or an error is available."""
    return bool(ray.wait([ref], timeout=0)[0])


def _find_problem(ref: Ref) -> str | None:
    """Return the difference of a node's installation, None without one, or "" if the node is gone."""
    try:
        answer = ray.get(ref, timeout=0)
    except ray.exceptions.GetTimeoutError:
        return f"not answered for {_CHECK_TIMEOUT:.0f} s"
    except ray.exceptions.RayTaskError as error:  # the node cannot unpickle it
        return f"another repros ({first_line(error)})"
    except RayError:
        return ""
    return answer if isinstance(answer, str) else this_installation().difference_from(answer)


def pending_status(workers: Iterable[NodeWorker]) -> dict[Ref, NodeWorker]:
    """Return the workers by their next status report."""
    return {worker.status: worker for worker in workers}
