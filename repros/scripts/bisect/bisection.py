"""One bisection: its question, its answers and its boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from repros.engine.environments.uv import ReportProgress
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.pool import LocalPool, OpenPool
from repros.scripts.bisect.prober import Prober
from repros.scripts.bisect.question import Question
from repros.scripts.bisect.search import Boundaries, scan, search


@dataclass(frozen=True)
class Bisection:
    """The outcome of a bisection; a release's number is its index in `question.releases`."""

    question: Question
    boundaries: Boundaries
    answers: Mapping[int, ReleaseAnswer]


def run_bisection(
    question: Question,
    folder: Path,
    report_progress: ReportProgress,
    *,
    every: bool = False,
    jobs: int | None = None,
    open_pool: OpenPool[Question] = LocalPool,
) -> Bisection:
    """Answer a question.

    Args:
        question: the question.
        folder: for logs and for the answers, which let an interrupted bisection be resumed.
        report_progress: receives a line for every answer.
        every: whether to ask every release instead of as few as possible.
        jobs: how many releases to probe side by side; None: as many as there is room for.
        open_pool: opens what probes them: this machine, or the nodes of a cluster.
    """
    first, last = len(question.older), len(question.older) + 1
    find = scan if every else search
    with Prober(question, folder, report_progress, jobs, open_pool) as prober:
        boundaries = find(range(first), first, range(last, last + len(question.newer)), prober)
    return Bisection(question, boundaries, prober.answers)
