"""The node agent of a bisection: the process on one node that probes releases like a local bisection; without Ray."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from repros.cluster.node_agent import NodeAgent
from repros.cluster.payload import Payload, pack_logs
from repros.cluster.worker_environment import receive_interrupts
from repros.engine import header
from repros.engine.environments import EnvironmentFailedError
from repros.engine.environments.releases import PackageRelease
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.imports import ImportFailure, ImportMemory
from repros.scripts.bisect.pool import LocalPool
from repros.scripts.bisect.question import Question

_MAX_RELEASES = 64
"""Above the number of concurrent releases on one node."""

FailedImport = tuple[str, ImportFailure, dt.date | None]
"""A failed import: the arguments of :meth:`repros.scripts.bisect.imports.ImportMemory.keep`."""


@dataclass(frozen=True)
class BisectionTask:
    """The question of a bisection, with its files for another machine."""

    question: Question
    script: Payload
    lock: Payload
    memory: bytes
    """Content of the file of known import failures."""

    def on_this_machine(self, folder: Path) -> Question:
        """Return the question with the paths of its script and lock on this machine."""
        spec, stack = self.question.spec, self.question.stack
        repro = header.read(self.script.unpack(folder))
        variant = repro.variant(spec.variant.name)
        assert variant is not None, f"{repro.path} has no variant {spec.variant.name}"
        spec = replace(spec, repro=repro, variant=variant)
        return replace(self.question, spec=spec, stack=replace(stack, lock=self.lock.unpack(folder)))


@dataclass(frozen=True)
class ProbedRelease:
    """The answer of a node about a release."""

    answer: ReleaseAnswer
    failed: tuple[FailedImport, ...]
    """Imports that failed on the node since the last answer."""
    base: Path
    """Folder of the logs on the node."""
    logs: bytes
    """Archive of `base`."""


class _Memory(ImportMemory):
    """The memory on a node, which records new failures for the driver."""

    failed: tuple[FailedImport, ...] = ()

    def keep(self, release: str, failure: ImportFailure, as_of: dt.date | None = None) -> None:
        super().keep(release, failure, as_of)
        self.failed += ((release, failure, as_of),)

    def take(self) -> tuple[FailedImport, ...]:
        """Return the failures since the last call."""
        release_answer, self.failed = self.failed, ()
        return release_answer


class ReleaseAgent(NodeAgent):
    """The process of one bisection on one node."""

    def __init__(self, task: BisectionTask) -> None:
        super().__init__()
        question = task.on_this_machine(self._folder / "question")
        file = self._folder / "imports.jsonl"
        file.write_bytes(task.memory)
        self._memory = _Memory(file, question.stack)
        self._pool = LocalPool(question, self._folder / "answers.jsonl", self._memory, self._lines.put, _MAX_RELEASES)
        self._opening = threading.Lock()

    def probe(self, release: PackageRelease, gpus: tuple[str, ...]) -> ProbedRelease | str:
        """Probe a release with the GPUs that Ray has assigned.

        Returns:
            The answer; or an error message if the stack's environment, or a copy of it, cannot be made on this node.

        Raises:
            CancelledError: the bisection has ended.
        """
        receive_interrupts()
        try:
            with self._opening:  # the first makes the environment
                answer = self._pool.submit(release, gpus)
            release_answer, base = answer.result(), self._pool.log_folder(release)
        except EnvironmentFailedError as error:
            return str(error)
        logs = pack_logs(base)
        shutil.rmtree(base, ignore_errors=True)
        return ProbedRelease(release_answer, self._memory.take(), base, logs)

    def close(self) -> None:
        """End all probes, and delete temporary files; the stack's environment stays."""
        self._pool.close()
        super().close()
