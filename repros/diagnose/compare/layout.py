"""The tensors of two steps in pairs, joined if ranks have parts of them, or passes have parts of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repros.diagnose.compare.batches import passes_of
from repros.diagnose.compare.recording import RecordedStep
from repros.diagnose.compare.summaries import ZERO, Summary, join_parts, join_rows, numel

GRADIENTS = ("gradient", "gradient before clipping", "gradient after clipping")
"""The stages of gradients; the last two if a run clips."""


@dataclass(frozen=True)
class Pair:
    """A tensor of the first run, and of the second."""

    name: str
    one: Summary
    other: Summary
    ranks: str | None = None
    """The rank that has them, if ranks are compared one by one."""
    in_order: bool = True
    """Whether their elements have the same order."""
    values: tuple[str, str] | None = None
    """Properties that differ, such as shapes, independent of the elements."""
    key: str = ""
    """Identifies this tensor in all steps."""

    def title(self, stage: str) -> str:
        """Return its name in a sentence."""
        if stage in GRADIENTS:
            return f"{stage.replace('gradient', f'gradient of {self.name}')}"
        if stage == "output of module" and self.name.endswith((")", "]")):  # a method's, such as `compute()`
            return f"output of {self.name}"
        return f"{stage} {self.name}".strip()


def tensor_pairs(one: RecordedStep, other: RecordedStep, field: str) -> list[Pair]:
    """Return the pairs of a field of two steps, with a tensor for each parameter's name.

    A missing gradient or state counts as zeros. Each rank's tensor is compared with that of the same rank in the other
    run, or of its last rank; the parts of a sharded tensor are joined first.
    """
    sides = [_by_name(step, field) for step in (one, other)]
    may_lack = field in {"state", "gradients"}
    names = [name for name in sides[0] if name in sides[1] or may_lack]
    names += [name for name in sides[1] if name not in sides[0]] if may_lack else []
    return [pair for name in names for pair in _pairs(name, sides[0].get(name), sides[1].get(name))]


def _by_name(step: RecordedStep, field: str) -> dict[str, list[Summary | None]]:
    tensors: dict[str, list[Summary | None]] = {}
    for rank in step.ranks:
        for name, summary in rank.get(field, {}).items():
            tensors.setdefault(name, []).append(summary)
    return tensors


def _pairs(name: str, one: list[Summary | None] | None, other: list[Summary | None] | None) -> list[Pair]:
    sides = [[ZERO if summary is None else summary for summary in side or [None]] for side in (one, other)]
    if any("unread" in summary for side in sides for summary in side):
        return []
    joined = [_join(sides[0], sides[1]), _join(sides[1], sides[0])]
    number = max(map(len, joined))
    several = number > 1
    pairs = []
    for rank in range(number):
        mine, theirs = (side[min(rank, len(side) - 1)] for side in joined)
        ranks = f"rank {rank}" if several else None
        values = None if ZERO in (mine, theirs) else differing_kinds(mine, theirs)
        pairs.append(Pair(name, mine, theirs, ranks, values=values, key=f"{name} {rank if several else ''}"))
    return pairs


def differing_kinds(one: Summary, other: Summary) -> tuple[str, str] | None:
    """Return the shapes or the dtypes of two tensors if they differ."""
    if one["shape"] != other["shape"]:
        return f"shape {one['shape']}", f"shape {other['shape']}"
    return (one["dtype"], other["dtype"]) if one["dtype"] != other["dtype"] else None


def _join(side: list[Summary], others: list[Summary]) -> list[Summary]:
    """Return the tensors of all ranks, joined into one if they are parts of it."""
    parts = [summary for summary in side if summary is not ZERO]
    if any("part" in summary for summary in parts):
        return [join_parts(parts)]
    if parts and others[0] is not ZERO:
        size = numel(others[0])
        # The flat parts of FSDP, all of which may be on one rank.
        if sum(map(numel, parts)) == size > min(map(numel, parts)):
            return [{**join_parts(parts), "shape": others[0]["shape"]}]
        if len(parts) == 1 and parts[0]["shape"] == [size]:
            return [{**parts[0], "shape": others[0]["shape"]}]
    return side


def output_pairs(one: RecordedStep, other: RecordedStep, *, in_order: bool) -> list[Pair]:
    """Return the pairs of modules' outputs, in the order of the first run.

    Args:
        one: a step.
        other: the step of the second run.
        in_order: whether all ranks and passes had the same rows; otherwise the rows of all are joined.
    """
    return _outputs_by_pass(one, other) if in_order else _outputs_joined(one, other)


def _outputs_by_pass(one: RecordedStep, other: RecordedStep) -> list[Pair]:
    pairs = []
    for (rank, number, mine), (*_, theirs) in zip(passes_of(one), passes_of(other), strict=True):
        where = f"rank {rank}" if len(one.ranks) > 1 else None
        for name, outputs in mine["outputs"].items():
            for index, pair in enumerate(zip(outputs, theirs["outputs"].get(name, ()), strict=False)):
                if not any("unread" in summary for summary in pair):
                    pairs.append(_output_pair(name, index, pair, where, f"{name} {rank} {number} {index}"))
        pairs += _lacking(mine["outputs"], theirs["outputs"], where)
    return pairs


def _lacking(one: Mapping[str, Any], other: Mapping[str, Any], ranks: str | None) -> list[Pair]:
    """Return a pair for each metric of an evaluation that only one run has, such as `Trainer.evaluate()[eval_loss]`."""
    names = [name for name in (*one, *other) if name.endswith("]") and (name in one) != (name in other)]
    texts = {True: "computed", False: "none"}
    return [Pair(name, ZERO, ZERO, ranks, values=(texts[name in one], texts[name in other])) for name in names]


def _output_pair(name: str, index: int, pair: tuple[Summary, Summary], ranks: str | None, key: str) -> Pair:
    title = name if index == 0 else f"{name} (tensor {index + 1})"
    return Pair(title, *pair, ranks=ranks, values=differing_kinds(*pair), key=key)


def _outputs_joined(one: RecordedStep, other: RecordedStep) -> list[Pair]:
    sides = [_joined(step) for step in (one, other)]
    pairs = []
    for name, outputs in sides[0].items():
        for index, (mine, theirs) in enumerate(zip(outputs, sides[1].get(name, ()), strict=False)):
            if mine is not None and theirs is not None and mine["shape"] == theirs["shape"]:
                pairs.append(Pair(name, mine, theirs, in_order=False, key=f"{name} {index}"))
    return pairs


def _joined(step: RecordedStep) -> dict[str, list[Summary | None]]:
    """Return the outputs of each module that all passes have, with their rows joined."""
    passes = [one_pass for *_, one_pass in passes_of(step)]
    joined: dict[str, list[Summary | None]] = {}
    for name, outputs in passes[0]["outputs"].items() if passes else ():
        of_passes = [one_pass["outputs"].get(name, []) for one_pass in passes]
        for index in range(len(outputs)):
            parts = [tensors[index] for tensors in of_passes if index < len(tensors) and "unread" not in tensors[index]]
            joined.setdefault(name, []).append(join_rows(parts) if len(parts) == len(passes) else None)
    return joined


def loss_pairs(one: RecordedStep, other: RecordedStep) -> list[Pair]:
    """Return the pair of losses: the sum over a rank's backward passes, averaged over the ranks."""
    losses = [_loss(step) for step in (one, other)]
    return [Pair("", losses[0], losses[1], key="loss")] if None not in losses else []  # type: ignore[arg-type]


def _loss(step: RecordedStep) -> Summary | None:
    totals = [_sum([loss for one_pass in rank["passes"] for loss in one_pass["losses"]]) for rank in step.ranks]
    known = [total for total in totals if total is not None]
    if len(known) < len(totals) or not known:
        return None
    mean = sum(known) / len(known)
    same: dict[str, Any] = {"sum": mean, "abs": abs(mean), "min": mean, "max": mean, "cos": mean, "sin": 0.0}
    return {**same, "shape": [], "hash": repr(mean)}


def _sum(losses: Sequence[Mapping[str, Any]]) -> float | None:
    sums = [loss["sum"] for loss in losses if "sum" in loss]
    return float(sum(sums)) if sums and len(sums) == len(losses) else None
