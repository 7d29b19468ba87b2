"""Pools, which examine several releases at once: on this machine, each job in a copy of the environment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import psutil

from repros.engine import environments
from repros.engine.environments.copies import copy
from repros.engine.environments.processes import Processes
from repros.engine.environments.releases import PackageRelease
from repros.engine.environments.uv import ReportProgress, watch_uv
from repros.engine.inventory import usable_cores
from repros.engine.own_folder import new_log_folder
from repros.engine.probe import probe
from repros.model import Device
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.imports import ImportMemory
from repros.scripts.bisect.runner import ReleaseRunner
from repros.scripts.bisect.script.question import ReleaseQuestion

JOB_MEMORY = 2 * 10**9
"""Memory of a job in bytes: the imports of a server, and the ranks that it forks."""


class Pool(Protocol):
    """Examines releases: on this machine (:class:`LocalPool`), or on the nodes of a cluster."""

    @property
    def width(self) -> int:
        """Number of releases that it examines at once."""

    def submit(self, release: PackageRelease) -> Future[ReleaseAnswer]:
        """Start or queue the examination of a release.

        Raises:
            EnvironmentFailedError: the stack's environment cannot be made; the future may raise it, too.
        """

    def close(self) -> None:
        """End the running examinations, which then give no answer."""


Q = TypeVar("Q", bound=ReleaseQuestion)
OpenPool = Callable[[Q, Path, ImportMemory, ReportProgress, int | None], Pool]
"""Opens a pool for a question.

Its other arguments are the file of answers, next to which the logs go, the memory, a receiver of progress, and the
number of releases to examine at once; None: as many as resources allow.
"""


def jobs_for(question: ReleaseQuestion, cores: int, memory: int) -> int:
    """Return the number of releases to examine at once: one per core if memory allows, and one on GPUs.

    Args:
        question: the question.
        cores: the cores of the machine.
        memory: its bytes.
    """
    if question.device is Device.CUDA:
        return 1
    return max(1, min(cores, memory // JOB_MEMORY))


class LocalPool:
    """Releases on this machine, in as many threads as jobs.

    Each makes a copy of the stack's environment for its first release; closing the pool removes them.
    """

    def __init__(
        self,
        question: ReleaseQuestion,
        out: Path,
        memory: ImportMemory,
        report_progress: ReportProgress,
        jobs: int | None = None,
    ) -> None:
        """Prepare without making anything; :data:`OpenPool` explains the arguments."""
        self.width = jobs or jobs_for(question, usable_cores(), psutil.virtual_memory().available)
        self._question, self._out, self._memory, self._report_progress = question, out, memory, report_progress
        self._threads: ThreadPoolExecutor | None = None
        self._processes = Processes()
        self._copies = ExitStack()
        self._free: list[ReleaseRunner] = []
        self._lock = threading.Lock()

    def submit(self, release: PackageRelease, gpus: tuple[str, ...] = ()) -> Future[ReleaseAnswer]:
        """Start or queue the examination of a release on these GPUs; :class:`Pool` explains it."""
        return self._ensure_threads().submit(self._probe, release, gpus)

    def close(self) -> None:
        """End the running examinations, and remove the copies."""
        self._processes.stop()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._copies.close()

    def log_folder(self, release: PackageRelease) -> Path:
        """Return the folder for the logs of a release that was submitted."""
        return self._runs / str(release.version)

    def _ensure_threads(self) -> ThreadPoolExecutor:
        if self._threads is None:
            question = self._question
            # In this thread, which an interrupt reaches, since it may be a download of gigabytes.
            python = environments.ensure(question.stack, self._report_progress)
            self._stacks_own = probe(
                python, question.stack.name, sim=question.device is Device.SIM, report_progress=self._report_progress
            )
            self._runs = new_log_folder(self._out)
            watch = self._processes.watch
            self._threads = ThreadPoolExecutor(self.width, initializer=watch_uv.set, initargs=(watch,))
        return self._threads

    def _probe(self, release: PackageRelease, gpus: tuple[str, ...]) -> ReleaseAnswer:
        with self._take_runner() as runner:
            answer = runner.probe(release, self._memory, self.log_folder(release), gpus)
        self._processes.check()
        return answer

    @contextmanager
    def _take_runner(self) -> Iterator[ReleaseRunner]:
        """Yield a runner that no other thread uses, and make one if all are in use: at most one per thread."""
        with self._lock:
            runner = self._free.pop() if self._free else None
        if runner is None:
            python = self._copies.enter_context(copy(self._question.stack, self._report_progress))
            runner = ReleaseRunner(self._question, self._stacks_own, python, self._processes)
        try:
            yield runner
        finally:
            self._free.append(runner)
