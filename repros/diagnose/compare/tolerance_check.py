"""Check whether two tensors differ by more than the tolerance of their step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from repros.diagnose.compare.layout import GRADIENTS, Pair
from repros.diagnose.compare.summaries import Distance, Scale, Summary, distance_between, numel, scale_of
from repros.diagnose.compare.tolerance import Tolerance

_OF_GRADIENTS = {"parameter before the step", "optimizer state", "parameter after the step", "parameter"}
"""The stages that depend on gradients of earlier steps."""


@dataclass(frozen=True)
class LargestDifference:
    """The difference within the tolerance that is nearest to it."""

    relative: float
    allowed: float
    where: str
    step: int


class ToleranceCheck:
    """Checks the pairs of tensors of one step after the other."""

    def __init__(self, *, exact: bool) -> None:
        self.largest: LargestDifference | None = None
        """Of all steps so far."""
        self.has_same_bits = True
        """Whether all tensors compared in this step are bitwise equal."""
        self._exact = exact
        self._scales: dict[str, Scale] = {}
        self._noise: set[str] = set()
        """Parameters whose gradients were only rounding errors in some step."""
        self._gradient = 0.0
        """The mean absolute value of a gradient's elements, over all parameters."""
        self._tolerance = Tolerance("float32", 1, 1, 1)

    def begin(self, tolerance: Tolerance) -> None:
        """Start the next step."""
        self._tolerance = tolerance
        self.has_same_bits = True

    def set_gradients(self, pairs: Sequence[Pair]) -> None:
        """Compute the mean absolute value of the step's gradients, before they are compared."""
        elements = sum(_size(pair.one, pair.other) for pair in pairs)
        total = sum(max(pair.one["abs"], pair.other["abs"]) for pair in pairs)
        self._gradient = total / elements if elements and math.isfinite(total) else 0.0

    def compare(self, stage: str, pair: Pair) -> Distance | None:
        """Return the distance between two tensors if it exceeds the tolerance."""
        if pair.one["hash"] is not None and pair.one["hash"] == pair.other["hash"]:
            self._scale(stage, pair)
            return None
        are_zero = pair.one["abs"] == pair.other["abs"] == 0 and not self._exact
        self.has_same_bits &= are_zero
        if are_zero:
            return None
        scale = self._scale(stage, pair)
        distance = distance_between(pair.one, pair.other, scale, in_order=pair.in_order)
        if self._exact:  # a joined tensor has no hash
            return distance if distance.relative > 0 or None not in {pair.one["hash"], pair.other["hash"]} else None
        allowed = self._allowed(stage, pair, scale)
        if distance.relative > allowed:
            return distance
        if self.largest is None or distance.relative / allowed > self.largest.relative / self.largest.allowed:
            self.largest = LargestDifference(distance.relative, allowed, pair.title(stage), self._tolerance.step)
        return None

    def _scale(self, stage: str, pair: Pair) -> Scale:
        """Return the largest scale of a tensor so far."""
        key = f"{'parameter' if stage.startswith('parameter') else stage} {pair.key}"
        now, before = scale_of(pair.one, pair.other), self._scales.get(key, Scale(0.0, 0.0))
        self._scales[key] = Scale(max(now.total, before.total), max(now.largest, before.largest))
        return self._scales[key]

    def _allowed(self, stage: str, pair: Pair, scale: Scale) -> float:
        allowed = self._tolerance.relative
        if stage in GRADIENTS and scale.total > 0:
            floor = self._tolerance.sums * self._gradient * _size(pair.one, pair.other)
            if scale.total <= floor:
                self._noise.add(pair.name)
            # The same floor for the largest element, which may be the only one.
            allowed += max(floor / scale.total, self._tolerance.sums * self._gradient / max(scale.largest, 1e-300))
        if stage in _OF_GRADIENTS and any(
            pair.name == parameter or pair.name.endswith(f" of {parameter}") for parameter in self._noise
        ):
            return math.inf
        return allowed


def _size(one: Summary, other: Summary) -> int:
    return max((numel(summary) for summary in (one, other) if summary["shape"] is not None), default=1)
