"""The ends of two runs: of what both have, as if it were a step's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from repros.diagnose.compare.recording import Step


def common_ends(one: Step, other: Step) -> tuple[Step, Step]:
    """Return two ends with the tensors of which all ranks of both have equally many, each by a name of its own.

    A program may make several models with parameters of one name, which are numbered as they were made: where one run
    has more of them than the other, nothing says which are the same.
    """
    fields = _common(one, other)
    first, second = (
        replace(step, ranks=tuple({**rank, **_only(rank, fields)} for rank in step.ranks)) for step in (one, other)
    )
    return first, second


def _common(one: Step, other: Step) -> dict[str, dict[str, int]]:
    ranks = [*one.ranks, *other.ranks]
    found: dict[str, dict[str, int]] = {}
    for field in ("parameters", "buffers"):
        numbers = [{name: len(each) for name, each in rank[field].items()} for rank in ranks]
        found[field] = {name: size for name, size in numbers[0].items() if all(n.get(name) == size for n in numbers)}
    return found


def _only(rank: Any, fields: dict[str, dict[str, int]]) -> dict[str, Any]:
    return {
        field: {
            name if place == 0 else f"{name} ({place + 1})": summary
            for name in sizes
            for place, summary in enumerate(rank[field][name])
        }
        for field, sizes in fields.items()
    }


def optimizers_of(one: Step, other: Step) -> Iterator[tuple[Step, Step]]:
    """Yield the optimizers of two ends in pairs, each as a step of its ranks, if all ranks have equally many."""
    numbers = {len(rank["optimizers"]) for step in (one, other) for rank in step.ranks}
    if len(numbers) == 1:
        for place in range(*numbers):
            first, second = (
                replace(step, ranks=tuple({"optimizer": place, **rank["optimizers"][place]} for rank in step.ranks))
                for step in (one, other)
            )
            yield first, second
