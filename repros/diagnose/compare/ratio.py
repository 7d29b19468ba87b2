"""The ratio of the second run's gradients or loss to the first's, if it is the same for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from repros.diagnose.compare.layout import Pair
from repros.diagnose.compare.summaries import Summary, numel

_CLOSE = 1e-3
"""Relative difference up to which two ratios are the same."""
_NOISE = 1e-5
"""Gradients that are smaller than this share of the mean have only rounding errors, and no ratio."""
_LARGEST = 64


def ratio_notes(gradients: Sequence[Pair], losses: Sequence[Pair]) -> Iterator[str]:
    """Yield a note for the gradients and one for the loss, each if it has one ratio, other than 1."""
    for pairs, one, several in ((losses, "the loss is", ""), (gradients, "the gradient is", "gradients are")):
        ratio = constant_ratio(pairs)
        if ratio is not None and abs(ratio - 1) > _CLOSE:
            number = len({pair.name for pair in pairs})
            what = one if number == 1 else f"all {number} {several}"
            yield f"{what} {format_ratio(ratio)} the first run's"


def constant_ratio(pairs: Sequence[Pair]) -> float | None:
    """Return the ratio of the second tensor to the first in all pairs; None if there is no such number."""
    known = [pair for pair in pairs if pair.one["shape"] is not None and pair.other["shape"] is not None]
    elements, total = sum(numel(pair.one) for pair in known), sum(pair.one["abs"] for pair in known)
    if not known or len(known) < len(pairs) or not 0 < total < math.inf:
        return None
    ratio: float = sum(pair.other["abs"] for pair in known) / total
    least = _NOISE * total / elements
    large = [pair for pair in known if pair.one["abs"] > least * numel(pair.one)]
    is_constant = all(_is_multiple(pair.one, pair.other, ratio, in_order=pair.in_order) for pair in large)
    return ratio if is_constant and 0 < ratio < math.inf else None


def _is_multiple(one: Summary, other: Summary, ratio: float, *, in_order: bool) -> bool:
    numbers = ("sum", "abs", *(("cos", "sin") if in_order else ()))
    scale = _CLOSE * ratio * one["abs"]
    return all(abs(other[name] - ratio * one[name]) <= scale for name in numbers)


def format_ratio(ratio: float) -> str:
    """Return `2 times`, `1/2 of` or `0.738 times`."""
    exact = Fraction(ratio).limit_denominator(_LARGEST)
    is_exact = exact > 0 and math.isclose(float(exact), ratio, rel_tol=_CLOSE) and 1 in exact.as_integer_ratio()
    if not is_exact:
        return f"{ratio:.3g} times"
    return f"{exact} of" if exact < 1 else f"{exact} times"
