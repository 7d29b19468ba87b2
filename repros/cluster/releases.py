"""Probes of a bisection's releases on the nodes of a cluster, in copies of each node's environment."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import ray
from ray.exceptions import RayError

from repros.cluster.payload import Payload, unpack_logs
from repros.cluster.release_agent import BisectionTask, ProbedRelease, ReleaseAgent
from repros.cluster.reservation import run_reserved
from repros.cluster.workers import NodeWorker, WorkerPool, first_line, pending_status
from repros.engine.environments.releases import PackageRelease
from repros.engine.environments.uv import ReportProgress
from repros.engine.own_folder import new_log_folder
from repros.model import Device
from repros.model.errors import ReprosError
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.imports import ImportMemory
from repros.scripts.bisect.pool import JOB_MEMORY, jobs_for
from repros.scripts.bisect.question import Question
from repros.scripts.bisect.runner import no_answer

_MAX_ATTEMPTS = 2
"""Maximum attempts of a release whose node is lost each time."""
_NO_NODE_TIMEOUT = 120.0
"""Seconds that a release without an eligible node waits for one."""
_POLL = 0.5
"""Seconds between polls of the nodes and of cancellation."""
_MAX_RELEASES = 256
"""Maximum number of concurrent releases."""


class ClusterPool:
    """The nodes of the cluster that this process is connected to, as a :class:`repros.scripts.bisect.pool.Pool`."""

    def __init__(
        self,
        question: Question,
        out: Path,
        memory: ImportMemory,
        report_progress: ReportProgress,
        jobs: int | None = None,
    ) -> None:
        """Start a worker on each node; for the arguments see :data:`repros.scripts.bisect.pool.OpenPool`.

        Raises:
            ReprosError: a node lacks repros or has another installation, or no node has the required GPU.
        """
        self._question, self._out, self._memory, self._report_progress, self._jobs = (
            question,
            out,
            memory,
            report_progress,
            jobs,
        )
        known = memory.file.read_bytes() if memory.file.exists() else b""
        task = BisectionTask(question, Payload.pack(question.spec.repro.path), Payload.pack(question.stack.lock), known)
        self._worker_pool = WorkerPool(report_progress, ReleaseAgent, task)
        self._worker_pool.start_workers()
        if not self._capable_workers():
            raise ReprosError(f"no node of the Ray cluster has a GPU, which {question.spec.repro.id} needs.")
        self._reserved_run = ray.remote(run_reserved)
        self._running: Counter[str] = Counter()
        """Number of running probes by node id."""
        self._log_folder: Path | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._threads = ThreadPoolExecutor(_MAX_RELEASES)
        self._monitor_thread = threading.Thread(target=self._monitor, daemon=True)
        self._monitor_thread.start()

    @property
    def width(self) -> int:
        """Number of concurrent releases on all nodes."""
        capacity = sum(map(self._capacity, self._capable_workers()))
        return max(1, min(capacity, self._jobs or capacity, _MAX_RELEASES))

    def submit(self, release: PackageRelease) -> Future[ReleaseAnswer]:
        """Start probing a release; see :class:`repros.scripts.bisect.pool.Pool`."""
        if self._log_folder is None:
            self._log_folder = new_log_folder(self._out)
        return self._threads.submit(self._probe, release, self._log_folder / str(release.version))

    def close(self) -> None:
        """Kill all processes of the bisection on all nodes."""
        self._closed.set()
        self._monitor_thread.join()
        self._worker_pool.close()
        self._threads.shutdown(cancel_futures=True)

    def _capable_workers(self) -> list[NodeWorker]:
        """Return the workers that can probe a release."""
        cuda = self._question.spec.device is Device.CUDA
        return [worker for worker in list(self._worker_pool.workers.values()) if worker.gpus or not cuda]

    def _capacity(self, worker: NodeWorker) -> int:
        return jobs_for(self._question, int(worker.cores), worker.memory)

    def _probe(self, release: PackageRelease, logs: Path) -> ReleaseAnswer:
        """Probe a release on a node, and on another one if the first is lost."""
        lost: list[str] = []
        while True:
            worker = self._reserve_worker(lost)
            if worker is None:
                return no_answer(self._question, release, f"no node was left for {_NO_NODE_TIMEOUT:.0f} s")
            try:
                probed = self._probe_on(worker, release)
            except RayError as error:
                lost.append(worker.id)
                why = f"its process on the node {worker.name} is lost ({first_line(error)})"
                if len(lost) == _MAX_ATTEMPTS:
                    return no_answer(self._question, release, f"{why}, and so was another before it")
                self._report_progress(f"once more: {release.version}, as {why}")
                continue
            finally:
                with self._lock:
                    self._running[worker.id] -= 1
            if isinstance(probed, ProbedRelease):
                return self._record(probed, logs)
            self._exclude(worker, probed)

    def _reserve_worker(self, lost: Sequence[str]) -> NodeWorker | None:
        """Wait for a worker with free capacity, preferably not a lost one; return None after a timeout without any."""
        served = time.monotonic()
        while not self._closed.is_set():
            with self._lock:
                capable = self._capable_workers()
                others = [worker for worker in capable if worker.id not in lost] or capable
                free = [worker for worker in others if self._running[worker.id] < self._capacity(worker)]
                if free:
                    chosen = min(free, key=lambda worker: self._running[worker.id] / self._capacity(worker))
                    self._running[chosen.id] += 1
                    return chosen
            if capable:
                served = time.monotonic()
            elif time.monotonic() - served > _NO_NODE_TIMEOUT:
                return None
            self._closed.wait(_POLL)
        raise CancelledError

    def _probe_on(self, worker: NodeWorker, release: PackageRelease) -> ProbedRelease | str:
        """Probe a release on a node as soon as Ray assigns a CPU, and on `cuda` the GPUs."""
        spec = self._question.spec
        gpus = min(spec.repro.processes, worker.gpus) if spec.device is Device.CUDA else 0
        memory = min(JOB_MEMORY, worker.memory) or None
        options = {"num_cpus": min(1.0, worker.cores), "num_gpus": gpus, "memory": memory, "max_retries": 0}
        reservation = self._reserved_run.options(**options, scheduling_strategy=worker.pin())
        ref = reservation.remote(worker.process, "probe", release)
        while not ray.wait([ref], timeout=_POLL)[0]:
            if self._closed.is_set():
                with contextlib.suppress(RayError):
                    ray.cancel(ref, force=True)
                raise CancelledError
        try:
            probed: ProbedRelease | str = ray.get(ref)
        except RayError as error:
            if self._closed.is_set():
                raise CancelledError from error
            raise
        return probed

    def _record(self, probed: ProbedRelease, logs: Path) -> ReleaseAnswer:
        """Record a node's answer, its import failures and its logs."""
        for failed in probed.failed:
            self._memory.keep(*failed)
        with contextlib.suppress(OSError):  # on a full disk the logs are lost, not the answer
            unpack_logs(probed.logs, logs)
        return replace(probed.answer, why=probed.answer.why.replace(str(probed.base), str(logs)))

    def _exclude(self, worker: NodeWorker, why: str) -> None:
        """Exclude a node that cannot make the environment.

        Raises:
            ReprosError: it was the last one.
        """
        with self._lock:
            self._worker_pool.exclude(worker)
            if not self._capable_workers():
                raise ReprosError(f"on the node {worker.name}: {why}")
        self._report_progress(f"left out: the node {worker.name}: {why}")

    def _monitor(self) -> None:
        """Report the nodes' lines of progress, and joined and lost nodes."""
        while not self._closed.wait(_POLL):
            with contextlib.suppress(RayError):
                with self._lock:
                    joined, lost_workers = self._worker_pool.poll()
                status = pending_status(list(self._worker_pool.workers.values()))
                ready = ray.wait(list(status), num_returns=len(status), timeout=0)[0] if status else []
                reports = [(status[ref], self._worker_pool.receive(status[ref])) for ref in ready]
                for worker in joined:
                    self._report_progress(f"joined: {worker.name}")
                for worker, why in (
                    *lost_workers,
                    *((worker, text) for worker, text in reports if isinstance(text, str)),
                ):
                    self._report_progress(f"lost: {worker.name}: {why}")
                for worker, probed in reports:
                    for line in () if isinstance(probed, str) else probed.lines:
                        self._report_progress(f"{worker.name}: {line}")
