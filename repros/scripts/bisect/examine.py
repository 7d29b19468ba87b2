"""The examination of one release by a cell: run until enough runs agree on whether they show its documented failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.engine.cells import is_warm, run_cell
from repros.engine.environments.processes import Processes
from repros.engine.launch import Servers
from repros.model import Cell, CellResult
from repros.scripts.bisect.search import Answer, confirm

NEEDED_RUNS, MAX_RUNS = 2, 3
"""Runs that must agree on a release, and the most runs of one release."""


@dataclass(frozen=True)
class Examination:
    """The result of the runs on one release."""

    answer: Answer
    why: str
    """The verdicts of the runs and their signatures."""
    shown: str = ""
    """As :attr:`repros.scripts.bisect.answers.ReleaseAnswer.shown`."""
    lasting: bool = True
    """Whether further runs would end alike; not if the machine may be to blame."""


def examine_cell(cell: Cell, folder: Path, processes: Processes) -> Examination:
    """Run a cell until enough runs show the documented failure, or enough are free of it.

    Args:
        cell: the cell.
        folder: for logs.
        processes: receives the processes that are started.

    Raises:
        CancelledError: the bisection has ended.
    """
    results: list[CellResult] = []
    with Servers(folder / "servers") as servers, processes.ended_by(servers.close):
        warm = servers if is_warm(cell) else None

        def run() -> Answer:
            log = folder / str(len(results) + 1)
            results.append(run_cell(cell, log, processes.stopped, servers=warm))
            processes.check()
            return _answer(results[-1])

        answer = confirm(run, NEEDED_RUNS, MAX_RUNS, nothing=Answer.UNKNOWN)
    return Examination(answer, _describe_results(results))


def count_equal(texts: Iterable[str]) -> str:
    """Return texts with equal ones counted: `2 x RuntimeError: ...; 1 x ran to its end`."""
    counts = Counter(texts)
    return "; ".join(f"{number} x {text}" for text, number in counts.items())


def _answer(result: CellResult) -> Answer:
    """Return the answer of one run; a failure other than the documented one gives none."""
    if result.verdict.shows_failure:
        return Answer.YES
    return Answer.NO if result.verdict.ran_clean else Answer.UNKNOWN


def _describe_results(results: Sequence[CellResult]) -> str:
    """Return the signatures of the runs, with equal ones counted: `2 x RuntimeError: ...`."""
    return count_equal(
        result.signature or "ran to its end"
        if _answer(result) is not Answer.UNKNOWN
        else f"{result.verdict}: {result.reason}"
        for result in results
    )
