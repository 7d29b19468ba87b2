"""The tensors of two steps, in pairs: joined where ranks hold parts of them, or passes hold parts of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repros.diagnose.compare.batches import passes_of
from repros.diagnose.compare.recording import Step
from repros.diagnose.compare.summaries import ZERO, Summary, join_parts, join_rows, numel


@dataclass(frozen=True)
class Pair:
    """A tensor of the first run, and of the second."""

    name: str
    one: Summary
    other: Summary
    ranks: str | None = None
    """Whose they are, where a rank's is compared."""
    in_order: bool = True
    """Whether their elements have the same places."""
    values: tuple[str, str] | None = None
    """What differs already without their numbers, such as shapes."""
    key: str = ""
    """The same for this tensor in all steps."""

    def title(self, stage: str) -> str:
        """Return what a sentence calls it."""
        if stage == "gradient":
            return f"gradient of {self.name}"
        if stage == "output of module" and self.name.endswith((")", "]")):  # a method's, such as `compute()`
            return f"output of {self.name}"
        return f"{stage} {self.name}".strip()


def tensor_pairs(one: Step, other: Step, field: str) -> list[Pair]:
    """Return the pairs of a field of steps: what tensors are by their parameters' names.

    A gradient or a state that is not there counts as zeros. Every rank's tensor is compared with that of the other
    run's same rank, or of its last one; the parts of a sharded one are joined before.
    """
    found = [_by_name(step, field) for step in (one, other)]
    may_lack = field in {"state", "gradients"}
    names = [name for name in found[0] if name in found[1] or may_lack]
    names += [name for name in found[1] if name not in found[0]] if may_lack else []
    return [pair for name in names for pair in _pairs(name, found[0].get(name), found[1].get(name))]


def _by_name(step: Step, field: str) -> dict[str, list[Summary | None]]:
    found: dict[str, list[Summary | None]] = {}
    for rank in step.ranks:
        for name, summary in rank.get(field, {}).items():
            found.setdefault(name, []).append(summary)
    return found


def _pairs(name: str, one: list[Summary | None] | None, other: list[Summary | None] | None) -> list[Pair]:
    sides = [[ZERO if each is None else each for each in side or [None]] for side in (one, other)]
    if any("unread" in each for side in sides for each in side):
        return []
    whole = [_whole(side, sides[1 - place]) for place, side in enumerate(sides)]
    number = max(map(len, whole))
    several = number > 1
    pairs = []
    for rank in range(number):
        mine, theirs = (side[min(rank, len(side) - 1)] for side in whole)
        ranks = f"rank {rank}" if several else None
        values = None if ZERO in (mine, theirs) else differing_kinds(mine, theirs)
        pairs.append(Pair(name, mine, theirs, ranks, values=values, key=f"{name} {rank if several else ''}"))
    return pairs


def differing_kinds(one: Summary, other: Summary) -> tuple[str, str] | None:
    """Return the shapes or the number formats of two tensors if these differ, which no rounding explains."""
    if one["shape"] != other["shape"]:
        return f"shape {one['shape']}", f"shape {other['shape']}"
    return (one["dtype"], other["dtype"]) if one["dtype"] != other["dtype"] else None


def _whole(side: list[Summary], others: list[Summary]) -> list[Summary]:
    """Return one tensor for those of all ranks if they are parts of it."""
    there = [each for each in side if each is not ZERO]
    if any("part" in each for each in there):
        return [join_parts(there)]
    if there and others[0] is not ZERO:
        size = numel(others[0])
        # The flat parts of FSDP, of which one rank may hold all.
        if sum(map(numel, there)) == size > min(map(numel, there)):
            return [{**join_parts(there), "shape": others[0]["shape"]}]
        if len(there) == 1 and there[0]["shape"] == [size]:
            return [{**there[0], "shape": others[0]["shape"]}]
    return side


def output_pairs(one: Step, other: Step, *, in_order: bool) -> list[Pair]:
    """Return the pairs of what modules returned, in the order in which they did in the first run.

    Args:
        one: a step.
        other: that of the second run.
        in_order: whether all ranks and passes had the same rows; else the rows of all are joined.
    """
    return _outputs_by_pass(one, other) if in_order else _outputs_joined(one, other)


def _outputs_by_pass(one: Step, other: Step) -> list[Pair]:
    pairs = []
    for (rank, number, mine), (*_, theirs) in zip(passes_of(one), passes_of(other), strict=True):
        where = f"rank {rank}" if len(one.ranks) > 1 else None
        for name, outputs in mine["outputs"].items():
            for place, pair in enumerate(zip(outputs, theirs["outputs"].get(name, ()), strict=False)):
                if not any("unread" in each for each in pair):
                    pairs.append(_output_pair(name, place, pair, where, f"{name} {rank} {number} {place}"))
        pairs += _lacking(mine["outputs"], theirs["outputs"], where)
    return pairs


def _lacking(one: Mapping[str, Any], other: Mapping[str, Any], ranks: str | None) -> list[Pair]:
    """Return a pair for each metric of an evaluation, such as `Trainer.evaluate()[eval_loss]`, of one run alone."""
    names = [name for name in (*one, *other) if name.endswith("]") and (name in one) != (name in other)]
    texts = {True: "computed", False: "none"}
    return [Pair(name, ZERO, ZERO, ranks, values=(texts[name in one], texts[name in other])) for name in names]


def _output_pair(name: str, place: int, pair: tuple[Summary, Summary], ranks: str | None, key: str) -> Pair:
    title = name if place == 0 else f"{name} (tensor {place + 1})"
    return Pair(title, *pair, ranks=ranks, values=differing_kinds(*pair), key=key)


def _outputs_joined(one: Step, other: Step) -> list[Pair]:
    sides = [_joined(step) for step in (one, other)]
    pairs = []
    for name, outputs in sides[0].items():
        for place, (mine, theirs) in enumerate(zip(outputs, sides[1].get(name, ()), strict=False)):
            if mine is not None and theirs is not None and mine["shape"] == theirs["shape"]:
                pairs.append(Pair(name, mine, theirs, in_order=False, key=f"{name} {place}"))
    return pairs


def _joined(step: Step) -> dict[str, list[Summary | None]]:
    """Return the outputs of each module that all passes have, over their rows."""
    passes = [each for *_, each in passes_of(step)]
    found: dict[str, list[Summary | None]] = {}
    for name, outputs in passes[0]["outputs"].items() if passes else ():
        others = [each["outputs"].get(name, []) for each in passes]
        for place in range(len(outputs)):
            parts = [each[place] for each in others if place < len(each) and "unread" not in each[place]]
            joined = join_rows(parts) if len(parts) == len(passes) else None
            found.setdefault(name, []).append(joined)
    return found


def loss_pairs(one: Step, other: Step) -> list[Pair]:
    """Return the pair of losses: what the backward passes began with, summed in each rank, as the mean of the ranks."""
    losses = [_loss(step) for step in (one, other)]
    return [Pair("", losses[0], losses[1], key="loss")] if None not in losses else []  # type: ignore[arg-type]


def _loss(step: Step) -> Summary | None:
    totals = [_sum([loss for each in rank["passes"] for loss in each["losses"]]) for rank in step.ranks]
    found = [each for each in totals if each is not None]
    if len(found) < len(totals) or not found:
        return None
    mean = sum(found) / len(found)
    same: dict[str, Any] = {"sum": mean, "abs": abs(mean), "min": mean, "max": mean, "cos": mean, "sin": 0.0}
    return {**same, "shape": [], "hash": repr(mean)}


def _sum(losses: Sequence[Mapping[str, Any]]) -> float | None:
    found = [loss["sum"] for loss in losses if "sum" in loss]
    return float(sum(found)) if found and len(found) == len(losses) else None
