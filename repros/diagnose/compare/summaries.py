"""Arithmetic on the summaries of tensors: joined over ranks and passes, and how far two lie apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repros.diagnose.compare.inside.summary import ANGLE

Summary = Mapping[str, Any]

ZERO: Summary = {"shape": None, "hash": None, **dict.fromkeys(("sum", "abs", "min", "max", "cos", "sin"), 0.0)}
"""Of a gradient that is not there."""
_MEASURES = {"sum": "sum", "abs": "sum of absolute values", "min": "smallest element", "max": "largest element"}
_WEIGHTED = {"cos": "sum weighted by place", "sin": "sum weighted by place"}


@dataclass(frozen=True)
class Gap:
    """How far two summaries lie apart."""

    relative: float
    """The largest difference of two of their numbers, as a part of the scale."""
    measure: str
    """Which number that is."""
    values: tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """What differences are a part of."""

    total: float
    """For sums: a sum of absolute values."""
    largest: float
    """For elements: the largest absolute value of one."""


def numel(summary: Summary) -> int:
    """Return how many elements a tensor has, or the part of it that the summary is of."""
    return math.prod(summary.get("part") or summary["shape"] or ())


def scale_of(*summaries: Summary) -> Scale:
    """Return the scale of the largest of several tensors."""
    totals = [each["abs"] for each in summaries if math.isfinite(each["abs"])]
    elements = [abs(each[name]) for each in summaries for name in ("min", "max") if math.isfinite(each[name])]
    return Scale(max(totals, default=0.0), max(elements, default=0.0))


def gap_between(one: Summary, other: Summary, scale: Scale, *, in_order: bool = True) -> Gap:
    """Return how far two tensors lie apart; their elements may have other places unless `in_order`."""
    largest = Gap(0.0, "sum", (one["sum"], other["sum"]))
    for name, measure in {**_MEASURES, **(_WEIGHTED if in_order else {})}.items():
        values = (one[name], other[name])
        part = _difference(*values, scale.largest if name in {"min", "max"} else scale.total)
        if part > largest.relative:
            largest = Gap(part, measure, values)
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
    """Return the summary of a tensor whose rows are those of several, in any order; None if they do not fit.

    Tensors without dimensions are taken for means over as many rows each.
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
