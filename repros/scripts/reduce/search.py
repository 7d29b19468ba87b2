"""The search for a smaller script: which candidates to run, in which order, for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from repros.scripts.reduce import numbers
from repros.scripts.reduce.attributes import OfClass, SelfValues, Subclasses
from repros.scripts.reduce.blocks import Called, Flattened, Guards, Unwrapped
from repros.scripts.reduce.code import Code, read
from repros.scripts.reduce.expressions import Annotations, Elements, Values
from repros.scripts.reduce.imports import Merged, Paths, imports_of
from repros.scripts.reduce.inlining import CommandLine, Constants, Defaults, Once
from repros.scripts.reduce.layout import count_lines, tidy
from repros.scripts.reduce.modules import Chains, Parts
from repros.scripts.reduce.names import names_of
from repros.scripts.reduce.parameters import Parameters, Returned
from repros.scripts.reduce.passes import Pass
from repros.scripts.reduce.statements import Decorators, Elses, Mentions, Statements, Unbound, Unread

Unit = TypeVar("Unit")
_DEEPEST = 6
"""Statements within statements that are looked at."""


Fails = Callable[[str, int], bool]
"""Runs a source on a number of ranks; returns whether it fails as the script does."""


def _always(_source: str, _ranks: int) -> bool:
    return True


class OutOfTimeError(Exception):
    """The time for the search is up."""


@dataclass
class Search:
    """A search, with the smallest script so far."""

    source: str
    """The smallest script that fails as the first one did."""
    ranks: int
    fails: Fails
    until: float
    """The end of its time, by `time.monotonic`."""
    confirms: Fails = _always
    """Runs a source with its own imports, rather than in a process that has imported the script's."""
    stop: Callable[[], None] = lambda: None
    """Ends the candidates that run."""
    jobs: int = 2
    """Candidates at the same time."""
    keeps_conditions: bool = False
    """Whether each `if` keeps its condition: where a text in the output is the failure, whatever prints it would do."""
    keeps_ranks: bool = False
    """Whether there must be as many ranks: the script starts them itself."""
    report_progress: Callable[[str], None] = lambda _: None
    tried: int = 0
    """Candidates that were run."""
    refused: int = 0
    """Candidates that needed no run."""
    kept: list[str] = field(default_factory=list)
    """What failed alike, each smaller than the one before."""
    is_complete: bool = False
    """Whether nothing smaller is left to try."""
    _answers: dict[tuple[str, int], bool] = field(default_factory=dict)
    _confirmed: dict[tuple[str, int], bool] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(init=False)

    def run(self) -> None:
        """Search until no candidate fails alike, the time is up, or an interruption comes, which is passed on."""
        self._pool = ThreadPoolExecutor(self.jobs)
        try:
            self._run()
            self.is_complete = True
        except OutOfTimeError:
            self.stop()
        except BaseException:
            self.stop()
            raise
        finally:
            self._pool.shutdown(cancel_futures=True)

    def _run(self) -> None:
        self._fewer_ranks()
        self._take(tidy(self.source))
        before = None
        passes = structure(conditions=not self.keeps_conditions)
        while before != self.source:
            before = self.source
            for each in passes:
                self._reduce(each)
            self._smaller_numbers()
            for each in values():
                self._reduce(each)
            self.report_progress(f"{count_lines(self.source)} lines after {self.tried} candidates")

    def _fewer_ranks(self) -> None:
        for ranks in range(1, self.ranks) if not self.keeps_ranks else ():
            if self._answer(self.source, ranks):
                self.ranks = ranks
                return

    def _reduce(self, pass_: Pass[Unit]) -> None:
        """Do as many of a pass's units as possible: in large chunks, then in ever smaller ones, from the end on."""
        code = Code(self.source)
        units = pass_.units(code)
        done: list[Unit] = []
        size = len(units)
        while size:
            left = [unit for unit in units if unit not in done]
            chunks = [left[max(0, end - size) : end] for end in range(len(left), 0, -size)]
            self._chunks(code, pass_, chunks, done)
            size = min(size - 1, -(-size // 2)) if size > 1 else 0
        if done:
            self.report_progress(f"{count_lines(self.source)} lines after {self.tried} candidates")

    def _chunks(self, code: Code, pass_: Pass[Unit], chunks: list[list[Unit]], done: list[Unit]) -> None:
        """Do each chunk that may be done, as many at once as there are jobs."""
        while chunks:
            batch, chunks = chunks[: self.jobs], chunks[self.jobs :]
            sources = [pass_.render(code, [*done, *chunk]) for chunk in batch]
            passing = [chunk for chunk, ok in zip(batch, self._ask(sources), strict=True) if ok]
            for number, chunk in enumerate(passing):
                source = pass_.render(code, [*done, *chunk])
                if (number == 0 or self._answer(source, self.ranks)) and self._holds_alone(source):
                    done += chunk
                    self._keep(source)

    def _smaller_numbers(self) -> None:
        code, place = Code(self.source), 0
        while place < len(found := list(numbers.groups(code))):
            number, places = found[place]
            for candidate in numbers.smaller(number):
                if self._take(numbers.render(code, places, candidate)):
                    code, place = Code(self.source), -1 if place == 0 else place - 1
                    break
            place += 1

    def _take(self, source: str) -> bool:
        """Keep a source if it fails alike; return whether it does."""
        if source == self.source or not self._answer(source, self.ranks):
            return False
        self._keep(source)
        return True

    def _holds_alone(self, source: str) -> bool:
        """Return whether a source with other imports than the smallest one so far fails with its own imports, too.

        In a process that has imported the script's, `import torch` is enough for `torch.distributed.checkpoint`.
        """
        if imports_of(source) == imports_of(self.source):
            return True
        if (source, self.ranks) not in self._confirmed:
            self._confirmed[source, self.ranks] = self.confirms(source, self.ranks)
        return self._confirmed[source, self.ranks]

    def _keep(self, source: str) -> None:
        self.kept.append(source)
        self.source = source

    def _answer(self, source: str, ranks: int) -> bool:
        return self._ask([source], ranks)[0]

    def _ask(self, sources: Sequence[str], ranks: int | None = None) -> list[bool]:
        """Return for each source whether it fails as the script does; each is run once at most.

        Raises:
            OutOfTimeError: the time is up.
        """
        ranks = ranks or self.ranks
        if time.monotonic() > self.until:
            raise OutOfTimeError
        new = [source for source in dict.fromkeys(sources) if (source, ranks) not in self._answers]
        running = {source: self._pool.submit(self.fails, source, ranks) for source in new if self._is_sound(source)}
        self.tried += len(running)
        self.refused += len(new) - len(running)
        for source in new:
            self._answers[source, ranks] = source in running and self._wait(running[source])
        return [self._answers[source, ranks] for source in sources]

    def _wait(self, running: Future[bool]) -> bool:
        try:
            return running.result(max(0.0, self.until - time.monotonic()))
        except TimeoutError as error:
            raise OutOfTimeError from error

    def _is_sound(self, source: str) -> bool:
        """Return whether a source compiles and defines what it uses."""
        code = read(source)
        return code is not None and not names_of(code.tree).lacks(names_of(Code(self.source).tree))


def structure(*, conditions: bool) -> list[Pass[Any]]:
    """Return the passes that leave out, in their order: what leaves out much first.

    Args:
        conditions: whether an `if` may lose its condition.
    """
    unread = Unread()
    return [
        *(CommandLine(), Guards(), Annotations(), Called(), Statements(0), Mentions(), unread),
        *(Statements(depth) for depth in range(1, _DEEPEST)),
        *(Elses(), Decorators(), Unwrapped(conditions=conditions), Flattened(), unread),
        *(Elements(), Parameters(), unread),
    ]


def values() -> list[Pass[Any]]:
    """Return the passes that write something else where a name stood, in their order; smaller numbers come before."""
    unread = Unread()
    return [
        *(Constants(), Defaults(), Parts(), Chains(), SelfValues(), OfClass(), Subclasses(), unread),
        *(Values(), Returned(), Once(), Unbound(), unread, Paths(), Merged()),
    ]
