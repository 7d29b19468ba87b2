"""A second comparison where each rank has a fixed batch: the run with fewer ranks repeats with larger batches."""

from __future__ import annotations

from dataclasses import replace

from repros.diagnose.compare.run import CompareResult

_RUNS = ("first", "second")


def lacking_rows(result: CompareResult, ranks: tuple[int, int] | None) -> tuple[int, int]:
    """Return which run, 0 or 1, needs larger batches, and by which factor; the factor is 1 if neither does.

    Args:
        result: a comparison.
        ranks: the number of ranks of both runs; None if they are not launched here.
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
