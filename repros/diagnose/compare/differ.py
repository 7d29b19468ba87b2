"""Compare two steps, evaluations or final states in the order of causes, up to the first difference.

The order in a step: batch, optimizer, learning rate and other options, parameters and the optimizer's state before the
step, outputs of modules in the order of their calls, buffers, loss, gradients, parameters after it. A difference in one
stage usually causes differences in the later ones. In an evaluation: the batch, the parameters and buffers before it,
the outputs, and the logged values. In the final state: parameters, buffers, the names of the trained parameters, and
each optimizer's options and state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from repros.diagnose.compare.batches import SeenRows, are_in_order, common_inputs, compare_batches, renamed, rows_of
from repros.diagnose.compare.difference import Difference
from repros.diagnose.compare.layout import GRADIENTS, Pair, loss_pairs, output_pairs, tensor_pairs
from repros.diagnose.compare.ratio import ratio_notes
from repros.diagnose.compare.recording import END, EVALUATION, STEP, RecordedStep
from repros.diagnose.compare.summaries import ZERO
from repros.diagnose.compare.tolerance import Tolerance, at_least, tolerance_of
from repros.diagnose.compare.tolerance_check import LargestDifference, ToleranceCheck

_NAMES = {"lr": "learning rate", "weight_decay": "weight decay"}
_SAME = 1e-9
"""Relative difference between two rates computed in different ways, in double precision."""
_MOST_NAMED = 3


@dataclass(frozen=True)
class StepComparison:
    """The comparison of a step."""

    tolerance: Tolerance
    difference: Difference | None
    equal: tuple[str, ...]
    """The stages before the difference, each with the number of its values."""
    largest: LargestDifference | None
    """The largest difference within the tolerance, of all steps so far."""
    has_same_bits: bool
    notes: tuple[str, ...] = ()
    """On the difference: the ratio of the gradients, if it is the same for all of them."""


Stage = tuple[str, Difference | None, int]
"""The name of a stage, its first difference, and the number of its values."""


class Differ:
    """Compares the steps, evaluations and final states of two runs in their order, with the state of earlier steps."""

    def __init__(self, *, exact: bool) -> None:
        """Start before the first step.

        Args:
            exact: whether to require bitwise equality.
        """
        self._check = ToleranceCheck(exact=exact)
        self._exact = exact
        self._earlier_rows = {kind: (SeenRows(), SeenRows()) for kind in (STEP, EVALUATION)}
        self._step_tolerance: Tolerance | None = None
        """The tolerance of the last step."""
        self._had_same_rows = True
        """Whether the ranks and passes of all steps so far had the same rows."""
        self._number = 0

    def compare(self, one: RecordedStep, other: RecordedStep) -> StepComparison:
        """Compare the next step of both runs, or the next evaluation, or the end."""
        self._number += one.kind == STEP
        one, other = common_ends(one, other) if one.kind == END else (one, renamed(one, other))
        tolerance = tolerance_of((one, other), max(self._number, 1))
        if one.kind == STEP:
            self._step_tolerance = tolerance
        elif self._step_tolerance is not None:  # of the steps that led to these parameters
            tolerance = at_least(tolerance, self._step_tolerance)
        self._check.begin(tolerance)
        equal: list[str] = []
        difference = None
        stages = {STEP: self._stages, EVALUATION: self._stages_of_evaluation, END: self._stages_of_end}[one.kind]
        for stage, difference, number in stages(one, other, tolerance):
            if difference is not None:
                break
            if number:
                equal.append(stage if number == 1 else f"{number} {stage}")
        notes: tuple[str, ...] = ()
        if difference is not None and difference.stage in {"loss", *GRADIENTS}:
            notes = tuple(ratio_notes(tensor_pairs(one, other, "gradients"), loss_pairs(one, other)))
        largest = self._check.largest
        return StepComparison(tolerance, difference, tuple(equal), largest, self._check.has_same_bits, notes)

    def _stages(self, one: RecordedStep, other: RecordedStep, tolerance: Tolerance) -> Iterator[Stage]:
        """Yield the stages of a step."""
        worlds = [step.ranks[0]["world"] for step in (one, other)]
        if worlds[0] == worlds[1] and len(one.ranks) != len(other.ranks):
            values = (f"{len(one.ranks)} ranks", f"{len(other.ranks)} ranks")
            yield "ranks", Difference("steps", "ranks that make this step", values), 0
        names = common_inputs(one, other)
        yield self._compare_batch(names, one, other, tolerance)
        for stage, difference in _compare_options(one, other):
            yield stage, difference, int(bool(one.ranks[0]["groups"]))
        in_order = are_in_order(one, other, names)
        self._had_same_rows &= in_order
        yield from self._tensors(
            ("parameters before it", "parameter before the step", tensor_pairs(one, other, "before")),
            ("tensors of the optimizer's state", "optimizer state", tensor_pairs(one, other, "state")),
            ("outputs of modules", "output of module", output_pairs(one, other, in_order=in_order)),
            # The statistics of a batch norm depend on the distribution of the rows to ranks and passes.
            ("buffers", "buffer", tensor_pairs(one, other, "buffers") if in_order else []),
            ("losses", "loss", loss_pairs(one, other)),
            *_gradient_stages(one, other),
            ("parameters after it", "parameter after the step", tensor_pairs(one, other, "after")),
        )

    def _stages_of_evaluation(self, one: RecordedStep, other: RecordedStep, tolerance: Tolerance) -> Iterator[Stage]:
        names = common_inputs(one, other)
        yield self._compare_batch(names, one, other, tolerance)
        in_order = are_in_order(one, other, names)
        have_same_rows = len(one.ranks) == len(other.ranks) and (in_order or not names)
        yield from self._tensors(
            ("parameters", "parameter", tensor_pairs(one, other, "parameters")),
            ("buffers", "buffer", tensor_pairs(one, other, "buffers") if self._had_same_rows else []),
            ("outputs of modules", "output of module", output_pairs(one, other, in_order=in_order)),
            # By rank: a logged value may be a mean over a rank's batches.
            ("logged values", "logged value", tensor_pairs(one, other, "logged") if have_same_rows else []),
        )

    def _stages_of_end(self, one: RecordedStep, other: RecordedStep, _: Tolerance) -> Iterator[Stage]:
        yield from self._tensors(
            ("parameters", "parameter", tensor_pairs(one, other, "parameters")),
            ("buffers", "buffer", tensor_pairs(one, other, "buffers") if self._had_same_rows else []),
        )
        yield "trained parameters", _compare_trained(one, other), 1
        for mine, theirs in optimizers_of(one, other):
            for stage, difference in _compare_options(mine, theirs):
                yield stage, difference, 1
            pairs = tensor_pairs(mine, theirs, "state")
            yield from self._tensors(("tensors of the optimizer's state", "optimizer state", pairs))

    def _tensors(self, *stages: tuple[str, str, Sequence[Pair]]) -> Iterator[Stage]:
        """Yield stages of tensors.

        Args:
            stages: for each, the name of its tensors in the plural and in the singular, and their pairs.
        """
        for stage, name, pairs in stages:
            if name in GRADIENTS:
                self._check.set_gradients(pairs)
            difference = self._first(name, pairs)
            number = 1 if stage == "losses" and pairs else len(pairs)
            yield "loss" if stage == "losses" else stage, difference, number

    def _compare_batch(
        self, names: Sequence[str], one: RecordedStep, other: RecordedStep, tolerance: Tolerance
    ) -> Stage:
        allowed = 0.0 if self._exact else tolerance.relative
        earlier = self._earlier_rows[one.kind]
        differences = []
        for name in names:
            difference, same_bits = compare_batches(name, one, other, earlier, allowed)
            self._check.has_same_bits &= same_bits
            differences += [difference] if difference is not None else []
        for rows, step in zip(earlier, (one, other), strict=True):
            for name in names:
                rows.add(step.where(), rows_of(step, name))
        return "inputs" if len(names) > 1 else "batch", differences[0] if differences else None, len(names)

    def _first(self, stage: str, pairs: Sequence[Pair]) -> Difference | None:
        """Return the first of several pairs of tensors that differ."""
        for pair in pairs:
            name = pair.title(stage)
            if pair.values is not None:
                return Difference(stage, name, pair.values, rank=pair.ranks)
            distance = self._check.compare(stage, pair)
            if distance is not None:
                sides = zip((pair.one, pair.other), distance.values, strict=True)
                values = tuple("none" if side is ZERO else f"{distance.measure} {value:.9g}" for side, value in sides)
                return Difference(stage, name, (values[0], values[1]), distance.relative, pair.ranks)
        return None


def _gradient_stages(one: RecordedStep, other: RecordedStep) -> Iterator[tuple[str, str, Sequence[Pair]]]:
    """Yield the gradients of a step as stages, those before a clipping first if a run clips."""
    has_clipped = any("unclipped" in rank for step in (one, other) for rank in step.ranks)
    if has_clipped:
        before = [
            replace(step, ranks=tuple({"unclipped": rank.get("gradients", {}), **rank} for rank in step.ranks))
            for step in (one, other)
        ]
        yield "gradients before clipping", "gradient before clipping", tensor_pairs(before[0], before[1], "unclipped")
    name = "gradient after clipping" if has_clipped else "gradient"
    yield "gradients", name, tensor_pairs(one, other, "gradients")


def _compare_options(one: RecordedStep, other: RecordedStep) -> Iterator[tuple[str, Difference | None]]:
    optimizers = [(rank.get("optimizer"), rank.get("kind_of_optimizer")) for rank in (one.ranks[0], other.ranks[0])]
    if optimizers[0] != optimizers[1]:
        texts = tuple(f"{kind} ({_ordinal(number)})" for number, kind in optimizers)
        yield "optimizer", Difference("optimizer", "optimizer", (texts[0], texts[1]))
    yield "optimizer", None
    yield "learning rates and options", differing_option(_groups(one), _groups(other))


def _groups(step: RecordedStep) -> list[Mapping[str, Any]]:
    return [group for rank in step.ranks for group in rank["groups"]]


def _ordinal(number: int | None) -> str:
    return f"optimizer {(number or 0) + 1} of the run"


def _compare_trained(one: RecordedStep, other: RecordedStep) -> Difference | None:
    names = [{name for rank in step.ranks for name in rank["trained"]} for step in (one, other)]
    if names[0] == names[1]:
        return None
    texts = tuple(list_names(sorted(names[mine] - names[1 - mine])) for mine in (0, 1))
    return Difference("trained", "parameters that require a gradient in one run alone", (texts[0], texts[1]))


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


def differing_option(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> Difference | None:
    """Return the first difference of two lists of groups, the learning rate's before that of other options.

    Args:
        one: groups with their `options` and the `names` of their parameters, of all ranks.
        other: those of the second run.
    """
    options = [_by_parameter(groups) for groups in (one, other)]
    only = [[name for name in options[mine] if name not in options[1 - mine]] for mine in (0, 1)]
    common = [name for name in options[0] if name in options[1]]
    differences = [one for name in common for one in _differences(name, options[0][name], options[1][name])]
    differences.sort(key=lambda difference: difference[0] != "lr")
    if differences:
        option, name, values = differences[0]
        same = sum(difference[0] == option and difference[2] == values for difference in differences)
        of = f"{same} parameters" if same > 1 else name
        title = _NAMES.get(option, option)
        return Difference(title, f"{title} of {of}", values)
    if any(only):
        texts = tuple(map(list_names, only))
        return Difference(
            "parameters trained", "parameters that the optimizer has in one run alone", (texts[0], texts[1])
        )
    return None


def _by_parameter(groups: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {name: group["options"] for group in groups for name in group["names"]}


def _differences(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, str, tuple[str, str]]]:
    return [
        (option, name, (_text(one[option]), _text(other[option])))
        for option in one
        if option in other and not _is_same(one[option], other[option])
    ]


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_SAME)
    return bool(one == other)


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def list_names(names: Sequence[str]) -> str:
    """Return the first of several names as a text."""
    if not names:
        return "no others"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
