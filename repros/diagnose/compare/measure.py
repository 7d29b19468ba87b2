"""Whether two tensors differ beyond the tolerance of their step, and the largest difference that it explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from repros.diagnose.compare.layout import Pair
from repros.diagnose.compare.summaries import Gap, Scale, Summary, gap_between, numel, scale_of
from repros.diagnose.compare.tolerance import Tolerance

_OF_GRADIENTS = {"parameter before the step", "optimizer state", "parameter after the step", "parameter"}
"""What follows from gradients, step after step."""


@dataclass(frozen=True)
class Worst:
    """A difference that the tolerance explains."""

    relative: float
    allowed: float
    where: str
    step: int


class Ruler:
    """Measures the pairs of each step in turn."""

    def __init__(self, *, exact: bool) -> None:
        """Begin before the first step."""
        self.worst: Worst | None = None
        """Of all steps so far, that which comes nearest to its tolerance."""
        self.has_same_bits = True
        """Whether all that was compared in this step has the same bits."""
        self._exact = exact
        self._scales: dict[str, Scale] = {}
        self._noise: set[str] = set()
        """Parameters whose gradients were mere rounding in some step."""
        self._gradient = 0.0
        """The mean absolute value of a gradient's element, of all parameters together."""
        self._tolerance = Tolerance("float32", 1, 1, 1)

    def begin(self, tolerance: Tolerance) -> None:
        """Begin a step."""
        self._tolerance = tolerance
        self.has_same_bits = True

    def weigh(self, pairs: Sequence[Pair]) -> None:
        """Take the gradients of a step, before they are judged: what an average element of one is."""
        elements = sum(_size(pair.one, pair.other) for pair in pairs)
        total = sum(max(pair.one["abs"], pair.other["abs"]) for pair in pairs)
        self._gradient = total / elements if elements and math.isfinite(total) else 0.0

    def judge(self, stage: str, pair: Pair) -> Gap | None:
        """Return how far two tensors lie apart if that is more than the tolerance."""
        if pair.one["hash"] is not None and pair.one["hash"] == pair.other["hash"]:
            self._scale(stage, pair)
            return None
        is_nothing = pair.one["abs"] == pair.other["abs"] == 0 and not self._exact
        self.has_same_bits &= is_nothing
        if is_nothing:
            return None
        scale = self._scale(stage, pair)
        gap = gap_between(pair.one, pair.other, scale, in_order=pair.in_order)
        if self._exact:  # what was joined has no bits of its own
            return gap if gap.relative > 0 or None not in {pair.one["hash"], pair.other["hash"]} else None
        allowed = self._allowed(stage, pair, scale)
        if gap.relative > allowed:
            return gap
        if self.worst is None or gap.relative / allowed > self.worst.relative / self.worst.allowed:
            self.worst = Worst(gap.relative, allowed, pair.title(stage), self._tolerance.step)
        return None

    def _scale(self, stage: str, pair: Pair) -> Scale:
        """Return the largest scale that a tensor has had so far."""
        key = f"{'parameter' if stage.startswith('parameter') else stage} {pair.key}"
        now, before = scale_of(pair.one, pair.other), self._scales.get(key, Scale(0.0, 0.0))
        self._scales[key] = Scale(max(now.total, before.total), max(now.largest, before.largest))
        return self._scales[key]

    def _allowed(self, stage: str, pair: Pair, scale: Scale) -> float:
        allowed = self._tolerance.relative
        if stage == "gradient" and scale.total > 0:
            floor = self._tolerance.sums * self._gradient * _size(pair.one, pair.other)
            if scale.total <= floor:
                self._noise.add(pair.name)
            # The same floor for the largest element, of which there may be one alone.
            allowed += max(floor / scale.total, self._tolerance.sums * self._gradient / max(scale.largest, 1e-300))
        if stage in _OF_GRADIENTS and any(
            pair.name == each or pair.name.endswith(f" of {each}") for each in self._noise
        ):
            return math.inf
        return allowed


def _size(one: Summary, other: Summary) -> int:
    return max((numel(each) for each in (one, other) if each["shape"] is not None), default=1)
