"""The final states of two runs, restricted to the tensors and optimizers that both have, in the form of a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from repros.diagnose.compare.recording import RecordedStep


def common_ends(one: RecordedStep, other: RecordedStep) -> tuple[RecordedStep, RecordedStep]:
    """Return two final states with the tensors that all ranks of both have equally often, each with a unique name.

    A program may create several models with parameters of the same name, which are numbered in order of creation. If
    one run has more of them than the other, it is unknown which of them correspond.
    """
    fields = _common(one, other)
    first, second = (
        replace(step, ranks=tuple({**rank, **_only(rank, fields)} for rank in step.ranks)) for step in (one, other)
    )
    return first, second


def _common(one: RecordedStep, other: RecordedStep) -> dict[str, dict[str, int]]:
    ranks = [*one.ranks, *other.ranks]
    common: dict[str, dict[str, int]] = {}
    for field in ("parameters", "buffers"):
        counts = [{name: len(summaries) for name, summaries in rank[field].items()} for rank in ranks]
        common[field] = {name: size for name, size in counts[0].items() if all(n.get(name) == size for n in counts)}
    return common


def _only(rank: Any, fields: dict[str, dict[str, int]]) -> dict[str, Any]:
    return {
        field: {
            name if number == 0 else f"{name} ({number + 1})": summary
            for name in sizes
            for number, summary in enumerate(rank[field][name])
        }
        for field, sizes in fields.items()
    }


def optimizers_of(one: RecordedStep, other: RecordedStep) -> Iterator[tuple[RecordedStep, RecordedStep]]:
    """Yield the optimizers of two final states in pairs, each in the form of a step, if all ranks have equally many."""
    counts = {len(rank["optimizers"]) for step in (one, other) for rank in step.ranks}
    if len(counts) == 1:
        for number in range(*counts):
            first, second = (
                replace(step, ranks=tuple({"optimizer": number, **rank["optimizers"][number]} for rank in step.ranks))
                for step in (one, other)
            )
            yield first, second
