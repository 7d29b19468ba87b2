"""Arithmetic on summaries of tensors: joining those of ranks and passes, and the distance between two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repros.diagnose.compare.inside.summary import ANGLE

Summary = Mapping[str, Any]

ZERO: Summary = {"shape": None, "hash": None, **dict.fromkeys(("sum", "abs", "min", "max", "cos", "sin"), 0.0)}
"""The summary of a missing gradient."""
_MEASURES = {"sum": "sum", "abs": "sum of absolute values", "min": "smallest element", "max": "largest element"}
_WEIGHTED = {"cos": "sum weighted by place", "sin": "sum weighted by place"}


@dataclass(frozen=True)
class Distance:
    """The distance between two summaries."""

    relative: float
    """The largest difference between two of their numbers, relative to the scale."""
    measure: str
    """The name of that number."""
    values: tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """The magnitudes to which differences are relative."""

    total: float
    """For sums: a sum of absolute values."""
    largest: float
    """For elements: the largest absolute value."""


def numel(summary: Summary) -> int:
    """Return the number of elements of a tensor, or of its part in the summary."""
    return math.prod(summary.get("part") or summary["shape"] or ())


def scale_of(*summaries: Summary) -> Scale:
    """Return the largest scale of several tensors."""
    totals = [summary["abs"] for summary in summaries if math.isfinite(summary["abs"])]
    extremes = (summary[name] for summary in summaries for name in ("min", "max"))
    elements = [abs(extreme) for extreme in extremes if math.isfinite(extreme)]
    return Scale(max(totals, default=0.0), max(elements, default=0.0))


def distance_between(one: Summary, other: Summary, scale: Scale, *, in_order: bool = True) -> Distance:
    """Return the distance between two tensors; unless `in_order`, their elements may be permuted."""
    largest = Distance(0.0, "sum", (one["sum"], other["sum"]))
    for name, measure in {**_MEASURES, **(_WEIGHTED if in_order else {})}.items():
        values = (one[name], other[name])
        part = _difference(*values, scale.largest if name in {"min", "max"} else scale.total)
        if part > largest.relative:
            largest = Distance(part, measure, values)
    return largest


def _difference(one: float, other: float, scale: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / scale if scale > 0 else math.inf


def join_parts(parts: Sequence[Summary]) -> Summary:
    """Return the summary of a tensor whose elements several ranks hold, in the order of the ranks."""
    start, cosine, sine = 0, 0.0, 0.0
    for part in parts:
        turned = math.cos(start * ANGLE), math.sin(start * ANGLE)
        cosine += part["cos"] * turned[0] - part["sin"] * turned[1]
        sine += part["cos"] * turned[1] + part["sin"] * turned[0]
        start += numel(part)
    shape = parts[0]["shape"] if "part" in parts[0] else [start]
    return {**_totals(parts), "shape": shape, "dtype": parts[0]["dtype"], "hash": None, "cos": cosine, "sin": sine}


def join_rows(parts: Sequence[Summary]) -> Summary | None:
    """Return the summary of a tensor with the rows of several, in any order; None if their shapes do not match.

    Tensors without dimensions are treated as means over equally many rows.
    """
    shapes = [part["shape"] for part in parts]
    if len(parts) == 1:
        return parts[0]
    if not any(shapes):
        totals = _totals(parts)
        means = {name: totals[name] / len(parts) for name in ("sum", "abs")}
        return {**totals, **means, "min": means["sum"], "max": means["sum"], **_plain(parts, [])}
    if not all(shapes) or len({tuple(shape[1:]) for shape in shapes}) > 1:
        return None
    return {**_totals(parts), **_plain(parts, [sum(shape[0] for shape in shapes), *shapes[0][1:]])}


def _plain(parts: Sequence[Summary], shape: list[int]) -> dict[str, Any]:
    return {"shape": shape, "dtype": parts[0]["dtype"], "hash": None}


def _totals(parts: Sequence[Summary]) -> dict[str, float]:
    filled = [part for part in parts if numel(part) > 0] or parts
    return {
        "sum": math.fsum(part["sum"] for part in parts),
        "abs": math.fsum(part["abs"] for part in parts),
        "min": min(part["min"] for part in filled),
        "max": max(part["max"] for part in filled),
    }
