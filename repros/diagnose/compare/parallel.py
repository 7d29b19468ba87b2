"""Refuse a comparison of other numbers of ranks where the ranks share a model and not the data."""

from __future__ import annotations

from collections.abc import Sequence

from repros.diagnose.compare.batches import common_inputs, passes_of, rows_of
from repros.diagnose.compare.difference import Difference
from repros.diagnose.compare.recording import STEP, RecordedStep, Recording
from repros.diagnose.compare.summaries import numel
from repros.model.errors import ReprosError

_EXPECTED = "expected data parallelism (DDP, FSDP), whose ranks have parts of a batch; nothing else is compared."


def refuse_model_parallel(
    difference: Difference | None, runs: tuple[Recording, Recording], ranks: tuple[int, int] | None
) -> None:
    """Refuse runs of which the one with more ranks is a pipeline or tensor parallel: their losses are not comparable.

    Args:
        difference: that of their comparison; equal runs are never refused.
        runs: both runs.
        ranks: the world size of each; None if they are not launched here.

    Raises:
        ReprosError: the ranks of a run share a model.
    """
    if difference is None or ranks is None or ranks[0] == ranks[1]:
        return
    fewer, more = (_first_step(run) for _, run in sorted(zip(ranks, runs, strict=True), key=lambda pair: pair[0]))
    if fewer is None or more is None:
        return
    if missing := _lacked_by_each(fewer, more):
        raise ReprosError(f"no rank calls all modules (rank 0 not {missing}), as in a pipeline; {_EXPECTED}")
    if part := _shared_parameter(fewer, more):
        raise ReprosError(
            f"all ranks have the same rows, and each a part of {part}: tensor parallelism, or a loader without a "
            f"distributed sampler; {_EXPECTED}"
        )


def _first_step(run: Recording) -> RecordedStep | None:
    return next((step for step in run.steps() if step.kind == STEP), None)


def _lacked_by_each(fewer: RecordedStep, more: RecordedStep) -> str:
    """Return a module that the first rank does not call; empty if a rank calls all that the other run calls."""
    called = _called(fewer, range(len(fewer.ranks)))
    lacking = [[name for name in called if name not in _called(more, [rank])] for rank in range(len(more.ranks))]
    return lacking[0][0] if lacking and all(lacking) else ""


def _called(step: RecordedStep, ranks: Sequence[int]) -> dict[str, None]:
    """Return the modules below the outermost ones that ranks call."""
    chosen = [one_pass for rank, _, one_pass in passes_of(step) if rank in ranks]
    roots = {name for one_pass in chosen for name in one_pass["roots"]}
    return {name: None for one_pass in chosen for name in one_pass["outputs"] if name not in roots}


def _shared_parameter(fewer: RecordedStep, more: RecordedStep) -> str:
    """Return a parameter of which each rank has a part, if all have the same rows; else an empty text."""
    names = common_inputs(fewer, more)
    keys = [
        sorted(row.key for name in names for row in rows_of(_of_rank(more, rank), name))
        for rank in range(len(more.ranks))
    ]
    if not keys or not keys[0] or any(rows != keys[0] for rows in keys):
        return ""
    whole = fewer.ranks[0]["before"]
    parts = (
        name for name, summary in more.ranks[0]["before"].items() if name in whole and _is_part(summary, whole[name])
    )
    return next(parts, "")


def _of_rank(step: RecordedStep, rank: int) -> RecordedStep:
    return RecordedStep(step.number, (step.ranks[rank],), step.kind)


def _is_part(summary: object, whole: object) -> bool:
    if not isinstance(summary, dict) or not isinstance(whole, dict) or "shape" not in summary or "shape" not in whole:
        return False
    return "part" in summary or numel(summary) < numel(whole)
