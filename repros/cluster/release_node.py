"""A node's part of a bisection: one process that probes releases, as a bisection on one machine does. Without Ray."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from repros.cluster.node import Node
from repros.cluster.parcel import Parcel, pack_logs
from repros.cluster.surroundings import receive_interrupts
from repros.engine import header
from repros.engine.environments import EnvironmentFailedError
from repros.engine.environments.releases import PackageRelease
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.imports import ImportFailure, ImportMemory
from repros.scripts.bisect.pool import LocalPool
from repros.scripts.bisect.question import Question

_MOST = 64
"""More than the driver probes side by side on one node."""

Failed = tuple[str, ImportFailure, dt.date | None]
"""An import that failed, as :meth:`repros.scripts.bisect.imports.ImportMemory.keep` takes it."""


@dataclass(frozen=True)
class Task:
    """A question, and what answers it on another machine."""

    question: Question
    script: Parcel
    lock: Parcel
    memory: bytes
    """The file of the imports that are known to fail."""

    def on_this_machine(self, folder: Path) -> Question:
        """Return the question with the script and the lock where this machine has them, or below a folder."""
        spec, stack = self.question.spec, self.question.stack
        repro = header.read(self.script.unpack(folder))
        variant = repro.variant(spec.variant.name)
        assert variant is not None, f"{repro.path} has no variant {spec.variant.name}"
        spec = replace(spec, repro=repro, variant=variant)
        return replace(self.question, spec=spec, stack=replace(stack, lock=self.lock.unpack(folder)))


@dataclass(frozen=True)
class Probed:
    """What a node knows of a release that it has probed."""

    answer: ReleaseAnswer
    failed: tuple[Failed, ...]
    """The imports that failed on the node since the last release."""
    base: Path
    """The folder of the release's logs on the node."""
    logs: bytes
    """An archive of that folder."""


class _Memory(ImportMemory):
    """The memory on a node; what it learns is sent to the driver with the next answer."""

    failed: tuple[Failed, ...] = ()

    def keep(self, release: str, failure: ImportFailure, as_of: dt.date | None = None) -> None:
        super().keep(release, failure, as_of)
        self.failed += ((release, failure, as_of),)

    def take(self) -> tuple[Failed, ...]:
        """Return what has failed since the last time."""
        found, self.failed = self.failed, ()
        return found


class ReleaseNode(Node):
    """One node's part of one bisection."""

    def __init__(self, task: Task) -> None:
        """Take over a process that Ray has started."""
        super().__init__()
        question = task.on_this_machine(self._folder / "question")
        file = self._folder / "imports.jsonl"
        file.write_bytes(task.memory)
        self._memory = _Memory(file, question.stack)
        self._pool = LocalPool(question, self._folder / "answers.jsonl", self._memory, self._lines.put, _MOST)
        self._opening = threading.Lock()

    def probe(self, release: PackageRelease, gpus: tuple[str, ...]) -> Probed | str:
        """Probe a release, with the GPUs that Ray gives to it.

        Returns:
            What is known of it; or why the stack's environment, or a copy of it, cannot be made here.

        Raises:
            CancelledError: the bisection has ended.
        """
        receive_interrupts()
        try:
            with self._opening:  # the first makes the environment
                answer = self._pool.submit(release, gpus)
            found, base = answer.result(), self._pool.log_folder(release)
        except EnvironmentFailedError as error:
            return str(error)
        logs = pack_logs(base)
        shutil.rmtree(base, ignore_errors=True)
        return Probed(found, self._memory.take(), base, logs)

    def close(self) -> None:
        """End what runs, and delete what was written; the stack's environment stays."""
        self._pool.close()
        super().close()
