"""The search for a smaller script: the choice and order of candidates, with smaller numbers, and its time limit."""

from __future__ import annotations

import ast
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from repros.engine.source import Edit
from repros.scripts.reduce.attributes import Chains, OfClass, Parts, SelfValues, Subclasses
from repros.scripts.reduce.blocks import Called, Flattened, Guards, Unwrapped
from repros.scripts.reduce.code import Code, read
from repros.scripts.reduce.expressions import Annotations, Elements, Values
from repros.scripts.reduce.imports import Merged, Paths, imports_of
from repros.scripts.reduce.inlining import CommandLine, Constants, Defaults, Once
from repros.scripts.reduce.layout import count_lines, tidy
from repros.scripts.reduce.names import names_of
from repros.scripts.reduce.parameters import Parameters, Returned
from repros.scripts.reduce.passes import ReductionPass
from repros.scripts.reduce.statements import Decorators, Elses, Mentions, Statements, Unbound, Unread

R = TypeVar("R")
_DEEPEST = 6
"""Depth of nested statements that are reduced."""


IsInteresting = Callable[[str, int], bool]
"""Runs a source on a number of ranks; returns whether it fails as the original does."""
_LARGEST = 10**12


def _always(_source: str, _ranks: int) -> bool:
    return True


class OutOfTimeError(Exception):
    """The search timed out."""


@dataclass
class Search:
    """A search, with its smallest script so far."""

    source: str
    """The smallest script so far that fails as the original does."""
    ranks: int
    is_interesting: IsInteresting
    until: float
    """Its deadline, by `time.monotonic`."""
    confirms: IsInteresting = _always
    """Runs a source with its own imports, rather than forked from a server that has imported the original's."""
    stop: Callable[[], None] = lambda: None
    """Ends the candidates that run."""
    jobs: int = 2
    """Candidates at the same time."""
    keeps_conditions: bool = False
    """Whether each `if` keeps its condition: without it, any code that prints a text of --text would be interesting."""
    keeps_ranks: bool = False
    """Whether the world size is fixed, because the script starts its ranks itself."""
    report_progress: Callable[[str], None] = lambda _: None
    tried: int = 0
    """Candidates that were run."""
    refused: int = 0
    """Candidates that were rejected without a run."""
    kept: list[str] = field(default_factory=list)
    """The scripts that failed alike, each smaller than the one before."""
    is_complete: bool = False
    """Whether all smaller candidates were tried."""
    _results: dict[tuple[str, int], bool] = field(default_factory=dict)
    _confirmed: dict[tuple[str, int], bool] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(init=False)

    def run(self) -> None:
        """Search until no candidate fails alike, the deadline, or an interruption, which is passed on."""
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
            for pass_ in passes:
                self._reduce(pass_)
            self._smaller_numbers()
            for pass_ in values():
                self._reduce(pass_)
            self.report_progress(f"{count_lines(self.source)} lines after {self.tried} candidates")

    def _fewer_ranks(self) -> None:
        for ranks in range(1, self.ranks) if not self.keeps_ranks else ():
            if self._test(self.source, ranks):
                self.ranks = ranks
                return

    def _reduce(self, pass_: ReductionPass[R]) -> None:
        """Apply as many reductions of a pass as possible: in large chunks, then in smaller ones, from the end on."""
        code = Code(self.source)
        reductions = pass_.reductions(code)
        done: list[R] = []
        size = len(reductions)
        while size:
            left = [reduction for reduction in reductions if reduction not in done]
            chunks = [left[max(0, end - size) : end] for end in range(len(left), 0, -size)]
            self._chunks(code, pass_, chunks, done)
            size = min(size - 1, -(-size // 2)) if size > 1 else 0
        if done:
            self.report_progress(f"{count_lines(self.source)} lines after {self.tried} candidates")

    def _chunks(self, code: Code, pass_: ReductionPass[R], chunks: list[list[R]], done: list[R]) -> None:
        """Apply each chunk that leaves an interesting source; run as many candidates at once as there are jobs."""
        while chunks:
            batch, chunks = chunks[: self.jobs], chunks[self.jobs :]
            sources = [pass_.render(code, [*done, *chunk]) for chunk in batch]
            passing = [chunk for chunk, ok in zip(batch, self._test_all(sources), strict=True) if ok]
            for number, chunk in enumerate(passing):
                source = pass_.render(code, [*done, *chunk])
                if (number == 0 or self._test(source, self.ranks)) and self._holds_alone(source):
                    done += chunk
                    self._keep(source)

    def _smaller_numbers(self) -> None:
        code, position = Code(self.source), 0
        while position < len(found := list(groups(code))):
            number, nodes = found[position]
            for candidate in smaller(number):
                if self._take(render(code, nodes, candidate)):
                    code, position = Code(self.source), -1 if position == 0 else position - 1
                    break
            position += 1

    def _take(self, source: str) -> bool:
        """Keep a source if it fails alike; return whether it does."""
        if source == self.source or not self._test(source, self.ranks):
            return False
        self._keep(source)
        return True

    def _holds_alone(self, source: str) -> bool:
        """Return whether a source with other imports than the smallest one so far fails with its own imports, too.

        In a server that has imported the original's, `import torch` is enough for `torch.distributed.checkpoint`.
        """
        if imports_of(source) == imports_of(self.source):
            return True
        if (source, self.ranks) not in self._confirmed:
            self._confirmed[source, self.ranks] = self.confirms(source, self.ranks)
        return self._confirmed[source, self.ranks]

    def _keep(self, source: str) -> None:
        self.kept.append(source)
        self.source = source

    def _test(self, source: str, ranks: int) -> bool:
        return self._test_all([source], ranks)[0]

    def _test_all(self, sources: Sequence[str], ranks: int | None = None) -> list[bool]:
        """Return for each source whether it fails as the original does; each is run at most once.

        Raises:
            OutOfTimeError: the search timed out.
        """
        ranks = ranks or self.ranks
        if time.monotonic() > self.until:
            raise OutOfTimeError
        new = [source for source in dict.fromkeys(sources) if (source, ranks) not in self._results]
        running = {
            source: self._pool.submit(self.is_interesting, source, ranks) for source in new if self._is_sound(source)
        }
        self.tried += len(running)
        self.refused += len(new) - len(running)
        for source in new:
            self._results[source, ranks] = source in running and self._wait(running[source])
        return [self._results[source, ranks] for source in sources]

    def _wait(self, running: Future[bool]) -> bool:
        try:
            return running.result(max(0.0, self.until - time.monotonic()))
        except TimeoutError as error:
            raise OutOfTimeError from error

    def _is_sound(self, source: str) -> bool:
        """Return whether a source compiles and defines all names that it uses."""
        code = read(source)
        return code is not None and not names_of(code.tree).lacks(names_of(Code(self.source).tree))


def structure(*, conditions: bool) -> list[ReductionPass[Any]]:
    """Return the passes that remove code, in order: those that remove most first.

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


def values() -> list[ReductionPass[Any]]:
    """Return the passes that replace names, in order; numbers are reduced before them."""
    unread = Unread()
    return [
        *(Constants(), Defaults(), Parts(), Chains(), SelfValues(), OfClass(), Subclasses(), unread),
        *(Values(), Returned(), Once(), Unbound(), unread, Paths(), Merged()),
    ]


def groups(code: Code) -> Iterator[tuple[int, list[ast.Constant]]]:
    """Yield each number above 1 with all its nodes, then, if there are several, with each alone; large ones first.

    A size may be written several times, which must agree.
    """
    nodes: dict[int, list[ast.Constant]] = defaultdict(list)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node not in code.in_text:
            nodes[node.value].append(node)
    large = sorted((number for number in nodes if 1 < number < _LARGEST), reverse=True)
    yield from ((number, nodes[number]) for number in large)
    for number in large:
        if len(nodes[number]) > 1:
            yield from ((number, [node]) for node in nodes[number])


def smaller(number: int) -> list[int]:
    """Return the numbers to try instead of a number, the smallest first: 1, 2 and its half."""
    return [candidate for candidate in dict.fromkeys((1, 2, number // 2)) if candidate < number]


def render(code: Code, nodes: list[ast.Constant], number: int) -> str:
    """Return the source with these nodes replaced by a number."""
    return code.apply(Edit(*code.span(node), str(number)) for node in nodes)
