"""A script, made smaller: the first run, the search, and the confirmation of what it has found."""

from __future__ import annotations

import contextlib
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.engine.environment import Targets
from repros.scripts.reduce.failure import Failure
from repros.scripts.reduce.layout import count_lines, count_tokens, lay_out
from repros.scripts.reduce.oracle import open_oracle
from repros.scripts.reduce.question import Question, ask
from repros.scripts.reduce.search import Search
from repros.scripts.try_.run import Task
from repros.scripts.try_.sight import Sight

_MOST_STEPS_BACK = 6
_LONGEST = 160
"""Characters of a signature in a line of progress."""
_RESERVED = 0.1
"""The part of the time that is kept for the confirmation."""


@dataclass(frozen=True)
class Options:
    """How to search."""

    seconds: float
    """The time for everything after the stack has been made ready."""
    jobs: int
    """Candidates at the same time."""
    texts: tuple[str, ...] = ()
    """What the output must have: the failure is a wrong number, say."""
    clean_on: Targets | None = None
    """One stack on which the script ends clean, and without the texts, and all candidates must."""


@dataclass(frozen=True)
class Reduction:
    """What a search has found."""

    source: str
    """The smaller script."""
    failure: Failure
    """What both show."""
    sight: Sight
    """What was seen of the smaller one, in a run as `repros try` makes it."""
    stack: str
    clean_on: str | None
    """The stack on which both end clean, if one was asked for."""
    ranks: int
    is_launched: bool
    """Whether they are started as torchrun starts them."""
    before: tuple[int, int]
    """Lines with code of the script, and its tokens."""
    after: tuple[int, int]
    """Those of the smaller one."""
    tried: int
    refused: int
    """Candidates that were no Python, or used what they did not define, and were not run."""
    seconds: float
    is_warm: bool
    """Whether candidates were forked from a process that had imported the libraries."""
    is_complete: bool
    """Whether nothing smaller was left to try, rather than the time up."""


def reduce_script(
    task: Task, where: Targets, runs: Path, options: Options, report_progress: Callable[[str], None] = lambda _: None
) -> Reduction:
    """Make a script smaller while its failure stays.

    An interruption ends the search, and what it has found until then is returned.

    Args:
        task: the script, and how it runs.
        where: one stack.
        runs: folder for the logs of the runs.
        options: how to search.
        report_progress: receives lines of progress.

    Raises:
        ReprosError: the script cannot run there, does not fail, or does not end clean where it should.
    """
    with contextlib.ExitStack() as opened:
        oracle = opened.enter_context(open_oracle(task, where, runs, options.texts, report_progress))
        clean = None
        if options.clean_on is not None:
            clean = opened.enter_context(
                open_oracle(task, options.clean_on, runs / "clean", options.texts, report_progress)
            )
        begun = time.monotonic()
        question = ask(oracle, clean, report_progress)
        kept = " and ".join(question.failure.texts) or question.failure.signature
        kept = textwrap.shorten(kept, _LONGEST, placeholder=" ...")
        report_progress(f"{kept} after {question.seconds:.1f} s; looking for a smaller script that fails alike")
        search = _search(question, begun + options.seconds * (1 - _RESERVED), options, report_progress)
        source, sight = _confirm(search, question)
        return Reduction(
            source,
            question.failure,
            sight,
            oracle.stack,
            clean.stack if clean else None,
            search.ranks,
            task.options.launched,
            _size(task.python_script.source),
            _size(source),
            search.tried,
            search.refused,
            time.monotonic() - begun,
            oracle.is_warm,
            search.is_complete,
        )


def _search(question: Question, until: float, options: Options, report_progress: Callable[[str], None]) -> Search:
    """Return a search that is over, or whose time is, or that was interrupted."""
    task = question.oracle.task
    search = Search(
        task.python_script.source,
        task.options.ranks,
        lambda source, ranks: question.answer(source, ranks) is not None,
        until,
        lambda source, ranks: not question.oracle.is_warm or question.answer(source, ranks, warm=False) is not None,
        question.stop,
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


def _confirm(search: Search, question: Question) -> tuple[str, Sight]:
    """Return the smallest script that fails alike in a run as `repros try` makes it, with its own imports."""
    place, step = len(search.kept) - 1, 1
    for _ in range(_MOST_STEPS_BACK):
        if place < 0:
            break
        source = lay_out(search.kept[place])
        sight = question.answer(source, search.ranks, warm=False)
        if sight is not None:
            return source, sight
        place, step = place - step, 2 * step
    return question.oracle.task.python_script.source, question.sight
