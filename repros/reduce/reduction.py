"""A script, made smaller: the first run, the search, and the confirmation of what it has found."""

from __future__ import annotations

import contextlib
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.attempt.run import Task
from repros.attempt.sight import Sight, Status
from repros.engine.environment import Where
from repros.errors import ReprosError
from repros.reduce.failure import Failure
from repros.reduce.layout import count_lines, lay_out
from repros.reduce.oracle import Oracle, open_oracle
from repros.reduce.search import Search

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
    text: str | None = None
    """A text that the output must have: the failure is a wrong number, say."""


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
    ranks: int
    before: int
    """Lines with code of the script."""
    after: int
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
    task: Task, where: Where, runs: Path, options: Options, say: Callable[[str], None] = lambda _: None
) -> Reduction:
    """Make a script smaller while its failure stays.

    An interruption ends the search, and what it has found until then is returned.

    Args:
        task: the script, and how it runs.
        where: one stack.
        runs: folder for the logs of the runs.
        options: how to search.
        say: receives lines of progress.

    Raises:
        ReprosError: the script cannot run there, or does not fail.
    """
    with open_oracle(task, where, runs, options.text, say) as oracle:
        begun = time.monotonic()
        say(f"running {task.script.origin} on {oracle.stack}")
        failure, sight, seconds = oracle.begin()
        if failure is None:
            raise ReprosError(_why_not(sight, oracle.stack, options.text))
        kept = textwrap.shorten(failure.text or failure.signature, _LONGEST, placeholder=" ...")
        say(f"{kept} after {seconds:.1f} s; looking for a smaller script that fails alike")
        search = Search(
            task.python_script.source,
            task.options.ranks,
            lambda source, ranks: oracle.run(source, ranks)[0] == failure,
            begun + options.seconds * (1 - _RESERVED),
            oracle.stop,
            options.jobs,
            keeps_conditions=options.text is not None,
            keeps_ranks=task.options.own,
            say=say,
        )
        with _kept_when_interrupted(say):
            search.run()
        source, sight = _confirm(search, oracle, failure, sight)
        return Reduction(
            source,
            failure,
            sight,
            oracle.stack,
            search.ranks,
            count_lines(task.python_script.source),
            count_lines(source),
            search.tried,
            search.refused,
            time.monotonic() - begun,
            oracle.is_warm,
            search.is_complete,
        )


@contextlib.contextmanager
def _kept_when_interrupted(say: Callable[[str], None]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted; keeping the smallest script so far")


def _confirm(search: Search, oracle: Oracle, failure: Failure, sight: Sight) -> tuple[str, Sight]:
    """Return the smallest script that fails alike in a run as `repros try` makes it, with its own imports."""
    place, step = len(search.kept) - 1, 1
    for _ in range(_MOST_STEPS_BACK):
        if place < 0:
            break
        source = lay_out(search.kept[place])
        found, seen, _ = oracle.run(source, search.ranks, warm=False)
        if found == failure:
            return source, seen
        place, step = place - step, 2 * step
    return oracle.task.python_script.source, sight


def _why_not(sight: Sight, stack: str, text: str | None) -> str:
    """Return why there is nothing to reduce."""
    if text is not None:
        return f"the output on {stack} does not hold {text!r}; expected a text that the script prints there."
    how = {
        Status.CLEAN: "it ends clean",
        Status.TIME_LIMIT: "it still runs at the limit of time, and nobody knows whether it hangs (--timeout sets it)",
        Status.INCOMPLETE: "fewer ranks took part than were asked for",
    }.get(sight.status, sight.note or sight.status.value)
    return (
        f"there is no failure to keep on {stack}: {how}; expected a script that fails there, another --stack, or "
        "--text with what it prints."
    )
