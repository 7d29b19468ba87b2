"""A second comparison where each rank has a fixed batch: the run with fewer ranks repeats with larger batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from repros.diagnose.compare.parallel import refuse_model_parallel
from repros.diagnose.compare.recording import Recording
from repros.diagnose.compare.run import CompareResult, compare

_RUNS = ("first", "second")


def compare_equal_batches(
    runs: tuple[Recording, Recording],
    repeat: Callable[[int, int], Recording],
    ranks: tuple[int, int] | None,
    *,
    offset: int = 0,
    exact: bool = False,
) -> CompareResult:
    """Compare two recordings, and once more with larger batches in one of them if each rank has a fixed batch.

    Args:
        runs: the reference and the run to compare with it.
        repeat: records a run, 0 or 1, again, with batches that are larger by a factor.
        ranks: the world size of both runs; None if they are not launched here.
        offset: number of steps of the reference before the other run's first step.
        exact: whether to require bitwise equality.

    Raises:
        ReprosError: their ranks share a model, they have nothing in common to compare, or a run cannot be recorded.
    """
    result = compare(*runs, offset=offset, exact=exact)
    refuse_model_parallel(result.difference, runs, ranks)
    smaller, factor = lacking_rows(result, ranks)
    if factor == 1:
        return result
    repeated = repeat(smaller, factor)
    pair = (runs[0], repeated) if smaller else (repeated, runs[1])
    return with_larger_batches(result, compare(*pair, offset=offset, exact=exact), smaller, factor)


def lacking_rows(result: CompareResult, ranks: tuple[int, int] | None) -> tuple[int, int]:
    """Return which run, 0 or 1, needs larger batches, and by which factor; the factor is 1 if neither does.

    Args:
        result: a comparison.
        ranks: the world size of both runs; None if they are not launched here.
    """
    difference = result.difference
    rows = difference.rows if difference is not None and result.steps == 0 else None
    if rows is None or ranks is None or ranks[0] == ranks[1] or 0 in rows:
        return 0, 1
    smaller = int(ranks[1] < ranks[0])
    factor, rest = divmod(ranks[1 - smaller], ranks[smaller])
    is_fixed = rest == 0 and rows[1 - smaller] == factor * rows[smaller]
    return smaller, factor if is_fixed else 1


def with_larger_batches(result: CompareResult, repeated: CompareResult, smaller: int, factor: int) -> CompareResult:
    """Return the comparison with the repeated run, or the one without if that has the same difference.

    Args:
        result: the comparison of the runs as they are.
        repeated: that with the run which was repeated.
        smaller: which run was repeated, 0 or 1.
        factor: how much larger its batches were.
    """
    is_useless = repeated.difference is not None and repeated.difference.rows is not None and repeated.steps == 0
    run = _RUNS[smaller]
    if is_useless:
        note = (
            f"the batch of a rank is fixed, and its rows come from no BatchSampler of torch: give the {run} run"
            f" {factor} times its batch size, by `-- COMMAND -- COMMAND` with an option of the program"
        )
        return replace(result, notes=(*result.notes, note))
    note = f"the batch of a rank is fixed: the {run} run was repeated with {factor} times the batch size of its loaders"
    return replace(repeated, notes=(*repeated.notes, note))
