"""The releases of a bisection on the nodes of a cluster: probed there, each node's in copies of its own environment."""

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

from repros.cluster.crew import Crew, Member, first_line, pending_news
from repros.cluster.lease import run_leased
from repros.cluster.parcel import Parcel, unpack_logs
from repros.cluster.release_node import Probed, ReleaseNode, Task
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

_TRIES = 2
"""How often a release is probed whose node is lost each time."""
_ALONE = 120.0
"""Seconds that a release waits for a node once there is none."""
_LOOK = 0.5
"""Seconds between two looks at the nodes, and at whether the end has come."""
_MOST = 256
"""The most releases side by side."""


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
        """Start a process on each node; :data:`repros.scripts.bisect.pool.OpenPool` explains the arguments.

        Raises:
            ReprosError: a node has no repros, or another one; or no node has what a release needs.
        """
        self._question, self._out, self._memory, self._report_progress, self._jobs = (
            question,
            out,
            memory,
            report_progress,
            jobs,
        )
        known = memory.file.read_bytes() if memory.file.exists() else b""
        task = Task(question, Parcel.pack(question.spec.repro.path), Parcel.pack(question.stack.lock), known)
        self._crew = Crew(report_progress, ReleaseNode, task)
        self._crew.gather()
        if not self._able():
            raise ReprosError(f"no node of the Ray cluster has a GPU, which {question.spec.repro.id} needs.")
        self._lease = ray.remote(run_leased)
        self._running: Counter[str] = Counter()
        """How many releases are probed on each node."""
        self._runs: Path | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._threads = ThreadPoolExecutor(_MOST)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def width(self) -> int:
        """How many releases are probed side by side, on all nodes together."""
        room = sum(map(self._room, self._able()))
        return max(1, min(room, self._jobs or room, _MOST))

    def submit(self, release: PackageRelease) -> Future[ReleaseAnswer]:
        """Begin to probe a release; :class:`repros.scripts.bisect.pool.Pool` explains it."""
        if self._runs is None:
            self._runs = new_log_folder(self._out)
        return self._threads.submit(self._probe, release, self._runs / str(release.version))

    def close(self) -> None:
        """End everything on every node."""
        self._closed.set()
        self._watcher.join()
        self._crew.close()
        self._threads.shutdown(cancel_futures=True)

    def _able(self) -> list[Member]:
        """Return the nodes that a release can be probed on."""
        cuda = self._question.spec.device is Device.CUDA
        return [member for member in list(self._crew.members.values()) if member.gpus or not cuda]

    def _room(self, member: Member) -> int:
        return jobs_for(self._question, int(member.cores), member.memory)

    def _probe(self, release: PackageRelease, logs: Path) -> ReleaseAnswer:
        """Probe a release on a node, and on another if that one is lost."""
        lost: list[str] = []
        while True:
            member = self._take(lost)
            if member is None:
                return no_answer(self._question, release, f"no node was left for {_ALONE:.0f} s")
            try:
                found = self._ask(member, release)
            except RayError as error:
                lost.append(member.id)
                why = f"its process on the node {member.name} is lost ({first_line(error)})"
                if len(lost) == _TRIES:
                    return no_answer(self._question, release, f"{why}, and so was another before it")
                self._report_progress(f"once more: {release.version}, as {why}")
                continue
            finally:
                with self._lock:
                    self._running[member.id] -= 1
            if isinstance(found, Probed):
                return self._keep(found, logs)
            self._leave_out(member, found)

    def _take(self, lost: Sequence[str]) -> Member | None:
        """Wait for a node with room, another than those if there is one; return None if there was none for long."""
        served = time.monotonic()
        while not self._closed.is_set():
            with self._lock:
                able = self._able()
                others = [member for member in able if member.id not in lost] or able
                free = [member for member in others if self._running[member.id] < self._room(member)]
                if free:
                    chosen = min(free, key=lambda member: self._running[member.id] / self._room(member))
                    self._running[chosen.id] += 1
                    return chosen
            if able:
                served = time.monotonic()
            elif time.monotonic() - served > _ALONE:
                return None
            self._closed.wait(_LOOK)
        raise CancelledError

    def _ask(self, member: Member, release: PackageRelease) -> Probed | str:
        """Let a node probe a release, once Ray gives it a processor there, and on `cuda` its GPUs."""
        spec = self._question.spec
        gpus = min(spec.repro.processes, member.gpus) if spec.device is Device.CUDA else 0
        memory = min(JOB_MEMORY, member.memory) or None
        options = {"num_cpus": min(1.0, member.cores), "num_gpus": gpus, "memory": memory, "max_retries": 0}
        lease = self._lease.options(**options, scheduling_strategy=member.pin())
        ref = lease.remote(member.process, "probe", release)
        while not ray.wait([ref], timeout=_LOOK)[0]:
            if self._closed.is_set():
                with contextlib.suppress(RayError):
                    ray.cancel(ref, force=True)
                raise CancelledError
        try:
            found: Probed | str = ray.get(ref)
        except RayError as error:
            if self._closed.is_set():
                raise CancelledError from error
            raise
        return found

    def _keep(self, found: Probed, logs: Path) -> ReleaseAnswer:
        """Take over what a node has found, and its logs."""
        for failed in found.failed:
            self._memory.keep(*failed)
        with contextlib.suppress(OSError):  # a full disk costs the logs, not the answer
            unpack_logs(found.logs, logs)
        return replace(found.answer, why=found.answer.why.replace(str(found.base), str(logs)))

    def _leave_out(self, member: Member, why: str) -> None:
        """Go on without a node that cannot make the environment.

        Raises:
            ReprosError: it was the last one.
        """
        with self._lock:
            self._crew.refuse(member)
            if not self._able():
                raise ReprosError(f"on the node {member.name}: {why}")
        self._report_progress(f"left out: the node {member.name}: {why}")

    def _watch(self) -> None:
        """Pass on what the nodes say, and note which come and go."""
        while not self._closed.wait(_LOOK):
            with contextlib.suppress(RayError):
                with self._lock:
                    joined, gone = self._crew.look()
                news = pending_news(list(self._crew.members.values()))
                ready = ray.wait(list(news), num_returns=len(news), timeout=0)[0] if news else []
                heard = [(news[ref], self._crew.hear(news[ref])) for ref in ready]
                for member in joined:
                    self._report_progress(f"joined: {member.name}")
                for member, why in (*gone, *((member, text) for member, text in heard if isinstance(text, str))):
                    self._report_progress(f"lost: {member.name}: {why}")
                for member, found in heard:
                    for line in () if isinstance(found, str) else found.lines:
                        self._report_progress(f"{member.name}: {line}")
