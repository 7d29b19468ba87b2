"""Two steps, evaluations or ends, in the order of causes: what comes first in it and differs is the first difference.

Batch, optimizer, learning rate and other options, parameters and the optimizer's state before the step, outputs of
modules in the order of their calls, buffers, loss, gradients, parameters after it. What follows is likely to differ in
turn. Of an evaluation there are the batch, the parameters and buffers before it, the outputs, and what was logged; of
the end, parameters, buffers, which parameters are trained, and each optimizer's options and state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repros.diagnose.compare.batches import Seen, are_in_order, common_inputs, compare_batches, renamed, rows_of
from repros.diagnose.compare.ends import common_ends, optimizers_of
from repros.diagnose.compare.layout import Pair, loss_pairs, output_pairs, tensor_pairs
from repros.diagnose.compare.measure import Ruler, Worst
from repros.diagnose.compare.options import differing_option, list_names
from repros.diagnose.compare.recording import END, EVALUATION, STEP, Step
from repros.diagnose.compare.summaries import ZERO
from repros.diagnose.compare.tolerance import Tolerance, at_least, tolerance_of


@dataclass(frozen=True)
class Difference:
    """The first place at which two runs differ."""

    stage: str
    """What kind of thing differs, such as `gradient`."""
    text: str
    """What differs, in a clause, without the values."""
    values: tuple[str, str]
    """Those of the first and of the second run."""
    relative: float | None = None
    """The relative difference; None where it is no number's."""
    rank: str | None = None
    """The ranks that are compared, where there are several."""


@dataclass(frozen=True)
class Compared:
    """What came of a step."""

    tolerance: Tolerance
    difference: Difference | None
    equal: tuple[str, ...]
    """What was compared before and is equal, each with its number."""
    worst: Worst | None
    """The largest difference that the tolerance explains."""
    has_same_bits: bool


Stage = tuple[str, Difference | None, int]
"""What is compared, its first difference, and how much there is of it."""


class Differ:
    """Compares the steps, evaluations and ends of two runs, in their order; it remembers what the runs had so far."""

    def __init__(self, *, exact: bool) -> None:
        """Begin before the first step.

        Args:
            exact: whether every bit counts.
        """
        self._ruler = Ruler(exact=exact)
        self._exact = exact
        self._seen = {kind: (Seen(), Seen()) for kind in (STEP, EVALUATION)}
        self._of_steps: Tolerance | None = None
        """Of the last step."""
        self._is_alike = True
        """Whether the ranks and passes of all steps so far had the same rows."""
        self._number = 0

    def compare(self, one: Step, other: Step) -> Compared:
        """Compare the next step of both runs, or the next evaluation, or the end."""
        self._number += one.kind == STEP
        one, other = common_ends(one, other) if one.kind == END else (one, renamed(one, other))
        tolerance = tolerance_of((one, other), max(self._number, 1))
        if one.kind == STEP:
            self._of_steps = tolerance
        elif self._of_steps is not None:  # what led to these parameters
            tolerance = at_least(tolerance, self._of_steps)
        self._ruler.begin(tolerance)
        equal: list[str] = []
        difference = None
        stages = {STEP: self._stages, EVALUATION: self._stages_of_evaluation, END: self._stages_of_end}[one.kind]
        for stage, found, number in stages(one, other, tolerance):
            if found is not None:
                difference = found
                break
            if number:
                equal.append(stage if number == 1 else f"{number} {stage}")
        return Compared(tolerance, difference, tuple(equal), self._ruler.worst, self._ruler.has_same_bits)

    def _stages(self, one: Step, other: Step, tolerance: Tolerance) -> Iterator[Stage]:
        """Yield the stages: the name of what is compared, its first difference, and how much there is of it."""
        worlds = [step.ranks[0]["world"] for step in (one, other)]
        if worlds[0] == worlds[1] and len(one.ranks) != len(other.ranks):
            values = (f"{len(one.ranks)} ranks", f"{len(other.ranks)} ranks")
            yield "ranks", Difference("steps", "ranks that make this step", values), 0
        names = common_inputs(one, other)
        yield self._compare_batch(names, one, other, tolerance)
        for stage, found in _compare_options(one, other):
            yield stage, found, int(bool(one.ranks[0]["groups"]))
        in_order = are_in_order(one, other, names)
        self._is_alike &= in_order
        yield from self._tensors(
            ("parameters before it", "parameter before the step", tensor_pairs(one, other, "before")),
            ("tensors of the optimizer's state", "optimizer state", tensor_pairs(one, other, "state")),
            ("outputs of modules", "output of module", output_pairs(one, other, in_order=in_order)),
            # What a batch norm keeps depends on how the rows are spread.
            ("buffers", "buffer", tensor_pairs(one, other, "buffers") if in_order else []),
            ("losses", "loss", loss_pairs(one, other)),
            ("gradients", "gradient", tensor_pairs(one, other, "gradients")),
            ("parameters after it", "parameter after the step", tensor_pairs(one, other, "after")),
        )

    def _stages_of_evaluation(self, one: Step, other: Step, tolerance: Tolerance) -> Iterator[Stage]:
        names = common_inputs(one, other)
        yield self._compare_batch(names, one, other, tolerance)
        in_order = are_in_order(one, other, names)
        is_alike = len(one.ranks) == len(other.ranks) and (in_order or not names)
        yield from self._tensors(
            ("parameters", "parameter", tensor_pairs(one, other, "parameters")),
            ("buffers", "buffer", tensor_pairs(one, other, "buffers") if self._is_alike else []),
            ("outputs of modules", "output of module", output_pairs(one, other, in_order=in_order)),
            # By rank: what is logged may be a mean over a rank's batches.
            ("logged values", "logged value", tensor_pairs(one, other, "logged") if is_alike else []),
        )

    def _stages_of_end(self, one: Step, other: Step, _: Tolerance) -> Iterator[Stage]:
        yield from self._tensors(
            ("parameters", "parameter", tensor_pairs(one, other, "parameters")),
            ("buffers", "buffer", tensor_pairs(one, other, "buffers") if self._is_alike else []),
        )
        yield "trained parameters", _compare_trained(one, other), 1
        for mine, theirs in optimizers_of(one, other):
            for stage, found in _compare_options(mine, theirs):
                yield stage, found, 1
            pairs = tensor_pairs(mine, theirs, "state")
            yield from self._tensors(("tensors of the optimizer's state", "optimizer state", pairs))

    def _tensors(self, *stages: tuple[str, str, Sequence[Pair]]) -> Iterator[Stage]:
        """Yield stages of tensors, each given by the names of what is compared and of one of it, and its pairs."""
        for stage, name, pairs in stages:
            if name == "gradient":
                self._ruler.weigh(pairs)
            found = self._first(name, pairs)
            yield ("loss" if stage == "losses" else stage), found, (1 if stage == "losses" and pairs else len(pairs))

    def _compare_batch(self, names: Sequence[str], one: Step, other: Step, tolerance: Tolerance) -> Stage:
        allowed = 0.0 if self._exact else tolerance.relative
        before = self._seen[one.kind]
        gaps = []
        for name in names:
            gap, same_bits = compare_batches(name, one, other, before, allowed)
            self._ruler.has_same_bits &= same_bits
            gaps += [gap] if gap is not None else []
        for seen, step in zip(before, (one, other), strict=True):
            for name in names:
                seen.add(step.where(), rows_of(step, name))
        found = Difference("batch", f"batch: {gaps[0].text}", gaps[0].values) if gaps else None
        return "inputs" if len(names) > 1 else "batch", found, len(names)

    def _first(self, stage: str, pairs: Sequence[Pair]) -> Difference | None:
        """Return the first of several pairs of tensors that differ."""
        for pair in pairs:
            name = pair.title(stage)
            if pair.values is not None:
                return Difference(stage, name, pair.values, rank=pair.ranks)
            gap = self._ruler.judge(stage, pair)
            if gap is not None:
                sides = zip((pair.one, pair.other), gap.values, strict=True)
                values = tuple("none" if side is ZERO else f"{gap.measure} {value:.9g}" for side, value in sides)
                return Difference(stage, name, (values[0], values[1]), gap.relative, pair.ranks)
        return None


def _compare_options(one: Step, other: Step) -> Iterator[tuple[str, Difference | None]]:
    optimizers = [(each.get("optimizer"), each.get("kind_of_optimizer")) for each in (one.ranks[0], other.ranks[0])]
    if optimizers[0] != optimizers[1]:
        texts = tuple(f"{kind} ({_ordinal(number)})" for number, kind in optimizers)
        yield "optimizer", Difference("optimizer", "optimizer", (texts[0], texts[1]))
    yield "optimizer", None
    found = differing_option(_groups(one), _groups(other))
    difference = Difference(found.stage, found.text, found.values) if found is not None else None
    yield "learning rates and options", difference


def _groups(step: Step) -> list[Mapping[str, Any]]:
    return [group for rank in step.ranks for group in rank["groups"]]


def _ordinal(number: int | None) -> str:
    return f"optimizer {(number or 0) + 1} of the run"


def _compare_trained(one: Step, other: Step) -> Difference | None:
    names = [{name for rank in step.ranks for name in rank["trained"]} for step in (one, other)]
    if names[0] == names[1]:
        return None
    texts = tuple(list_names(sorted(names[place] - names[1 - place])) for place in (0, 1))
    return Difference("trained", "parameters that require a gradient in one run alone", (texts[0], texts[1]))
