"""The reduction of a script: the first run, the search, and the confirmation of its result."""

from __future__ import annotations

import contextlib
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.engine.environment import Targets
from repros.scripts.reduce.candidates import open_runner
from repros.scripts.reduce.failure import Failure
from repros.scripts.reduce.interestingness import InterestingnessTest, build_test
from repros.scripts.reduce.layout import count_lines, count_tokens, lay_out
from repros.scripts.reduce.search import Search
from repros.scripts.try_.outcome import ScriptOutcome
from repros.scripts.try_.task import Task

_MOST_STEPS_BACK = 6
_LONGEST = 160
"""Characters of a signature in a line of progress."""
_RESERVED = 0.1
"""The fraction of the time that is reserved for the confirmation."""


@dataclass(frozen=True)
class ReduceOptions:
    """How to search."""

    seconds: float
    """Time for everything after the environment has been made."""
    jobs: int
    """Candidates at the same time."""
    texts: tuple[str, ...] = ()
    """Texts that the output must contain, for example if a wrong number is the failure."""
    clean_on: Targets | None = None
    """One stack on which the original and all candidates must have a clean exit, without the texts."""


@dataclass(frozen=True)
class Reduction:
    """The result of a search."""

    source: str
    """The smaller script."""
    failure: Failure
    """The failure of both scripts."""
    outcome: ScriptOutcome
    """Outcome of the smaller one in a cold run, as `repros try` makes it."""
    stack: str
    clean_on: str | None
    """The stack on which both have a clean exit, if one was named."""
    ranks: int
    is_launched: bool
    """Whether they are started as by torchrun."""
    before: tuple[int, int]
    """Lines with code and tokens of the original."""
    after: tuple[int, int]
    """Lines with code and tokens of the smaller script."""
    tried: int
    refused: int
    """Candidates that were not run, since they were not valid Python or used undefined names."""
    seconds: float
    is_warm: bool
    """Whether candidates were forked from a server that had imported the libraries."""
    is_complete: bool
    """Whether all smaller candidates were tried before the time was over."""


def reduce_script(
    task: Task,
    where: Targets,
    runs: Path,
    options: ReduceOptions,
    report_progress: Callable[[str], None] = lambda _: None,
) -> Reduction:
    """Make a script smaller while its failure stays the same.

    An interruption ends the search; its result so far is returned.

    Args:
        task: the script, and how it runs.
        where: one stack.
        runs: folder for the logs of the runs.
        options: how to search.
        report_progress: receives lines of progress.

    Raises:
        ReprosError: the script cannot run there, does not fail, or does not have a clean exit where it should.
    """
    with contextlib.ExitStack() as opened:
        runner = opened.enter_context(open_runner(task, where, runs, options.texts, report_progress))
        clean = None
        if options.clean_on is not None:
            clean = opened.enter_context(
                open_runner(task, options.clean_on, runs / "clean", options.texts, report_progress)
            )
        begun = time.monotonic()
        test = build_test(runner, clean, report_progress)
        failure = " and ".join(test.failure.texts) or test.failure.signature
        failure = textwrap.shorten(failure, _LONGEST, placeholder=" ...")
        report_progress(f"{failure} after {test.seconds:.1f} s; searching for a smaller script with the same failure")
        search = _search(test, begun + options.seconds * (1 - _RESERVED), options, report_progress)
        source, outcome = _confirm(search, test)
        return Reduction(
            source,
            test.failure,
            outcome,
            runner.stack,
            clean.stack if clean else None,
            search.ranks,
            task.options.launched,
            _size(task.python_script.source),
            _size(source),
            search.tried,
            search.refused,
            time.monotonic() - begun,
            runner.is_warm,
            search.is_complete,
        )


def _search(
    test: InterestingnessTest, until: float, options: ReduceOptions, report_progress: Callable[[str], None]
) -> Search:
    """Return a search that is complete, timed out, or was interrupted."""
    task = test.runner.task
    search = Search(
        task.python_script.source,
        task.options.ranks,
        lambda source, ranks: test.run(source, ranks) is not None,
        until,
        lambda source, ranks: not test.runner.is_warm or test.run(source, ranks, warm=False) is not None,
        test.stop,
        options.jobs,
        keeps_conditions=bool(options.texts),
        keeps_ranks=task.options.own,
        report_progress=report_progress,
    )
    with _kept_when_interrupted(report_progress):
        search.run()
    return search


def _size(source: str) -> tuple[int, int]:
    return count_lines(source), count_tokens(source)


@contextlib.contextmanager
def _kept_when_interrupted(report_progress: Callable[[str], None]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        report_progress("interrupted; keeping the smallest script so far")


def _confirm(search: Search, test: InterestingnessTest) -> tuple[str, ScriptOutcome]:
    """Return the smallest script with the same failure in a cold run, with its own imports."""
    position, step = len(search.kept) - 1, 1
    for _ in range(_MOST_STEPS_BACK):
        if position < 0:
            break
        source = lay_out(search.kept[position])
        outcome = test.run(source, search.ranks, warm=False)
        if outcome is not None:
            return source, outcome
        position, step = position - step, 2 * step
    return test.runner.task.python_script.source, test.outcome
