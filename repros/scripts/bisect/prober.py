"""The answers of a bisection's releases: recorded by an earlier one, or examined by a pool."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from repros.engine.environments.releases import PackageRelease
from repros.engine.environments.uv import ReportProgress
from repros.scripts.bisect.answers import ReleaseAnswer, append_answer, read_answers
from repros.scripts.bisect.imports import ImportMemory
from repros.scripts.bisect.pool import LocalPool, OpenPool, Q
from repros.scripts.bisect.runner import no_answer, recall
from repros.scripts.bisect.script.question import ReleaseQuestion
from repros.scripts.bisect.search import Answer


class Prober:
    """Source of answers for the releases of one question, to be used as a context manager.

    An answer of an earlier bisection is used again. Otherwise the pool examines the release.
    """

    def __init__(
        self,
        question: Q,
        folder: Path,
        report_progress: ReportProgress,
        jobs: int | None = None,
        open_pool: OpenPool[Q] = LocalPool,
    ) -> None:
        """Read the earlier answers from the folder, and write new answers and logs there.

        Args:
            question: the question.
            folder: for answers and logs.
            report_progress: receives a line for every answer, and lines of progress.
            jobs: number of releases to examine at once; None: as many as resources allow.
            open_pool: opens the pool that examines them.

        Raises:
            ReprosError: the pool cannot be opened.
        """
        self.answers: dict[int, ReleaseAnswer] = {}
        """The answers so far, by the release's number."""
        self._decide: Callable[[ReleaseAnswer], Answer] = lambda answer: answer.answer
        self._wanted, self._under_way = set[int](), set[int]()
        """The numbers that this search has begun, and those under examination, for earlier searches too."""
        self._question: ReleaseQuestion = question
        self._file = folder / "answers.jsonl"
        self._memory = ImportMemory(folder.parent / "imports.jsonl", question.stack)
        self._earlier = {answer.key: answer for answer in read_answers(self._file)}
        self._report_progress = report_progress
        self._done: SimpleQueue[tuple[int, Future[ReleaseAnswer]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._pool = open_pool(question, self._file, self._memory, report_progress, jobs)

    @property
    def width(self) -> int:
        """Number of releases that are examined at once."""
        return self._pool.width

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    def begin_search(self, decide: Callable[[ReleaseAnswer], Answer]) -> None:
        """Begin another search of the same releases; pending answers of an earlier search are not answers of this one.

        Args:
            decide: returns the answer of a release, if its runs alone do not determine it.
        """
        self._decide = decide
        self._wanted.clear()

    def begin(self, number: int) -> None:
        """Begin to determine the answer of a release by its number, unless an earlier search has."""
        self._wanted.add(number)
        if number in self._under_way:
            return
        self._under_way.add(number)
        release = self._question.releases[number]
        answer = self.answers.get(number) or self._earlier.get(self._question.key(release)) or self._recall(release)
        if answer is None:
            self._pool.submit(release).add_done_callback(lambda done: self._done.put((number, self._kept(done))))
        else:
            future = Future[ReleaseAnswer]()
            future.set_result(answer)
            self._done.put((number, future))

    def next_answer(self) -> tuple[int, Answer]:
        """Wait for the next answer, and return the number of its release with it.

        Raises:
            EnvironmentFailedError: a copy of the stack's environment cannot be made.
        """
        while True:
            number, future = self._done.get()
            answer, release = future.result(), self._question.releases[number]
            if number not in self.answers:
                self._report_progress(f"{self._question.package} {release.version} ({release.date}): {answer.text}")
            self.answers[number] = answer
            self._under_way.discard(number)
            if number in self._wanted:
                self._wanted.discard(number)
                return number, self._decide(answer)

    def _kept(self, done: Future[ReleaseAnswer]) -> Future[ReleaseAnswer]:
        """Record an answer in the thread that produced it; return it, or the error that prevented that."""
        if not done.cancelled() and done.exception() is None:
            try:
                with self._lock:
                    append_answer(self._file, done.result())
            except OSError as error:
                failed = Future[ReleaseAnswer]()
                failed.set_exception(error)
                return failed
        return done

    def _recall(self, release: PackageRelease) -> ReleaseAnswer | None:
        """Return the answer for a release that another bisection could not import with any dependencies."""
        known = recall(self._question, release, self._memory, release.date)
        return no_answer(self._question, release, str(known)) if known else None
