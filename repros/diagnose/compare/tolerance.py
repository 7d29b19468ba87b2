"""How far numbers of two runs may lie apart by rounding alone, from their format and the sums behind them.

A stored number is rounded to its format, by a half of `eps` at most, once in each module that it passes: roundings of
modules in a row add like a random walk, so with the square root of their number. A sum of n products is rounded n
times, in float32 at least, which adds with the square root of n. Each optimizer step adds as much again to the
parameters. So the tolerance at step t is

    SAFETY * t * (eps * sqrt(modules) + eps_of_sums * sqrt(n))

of the largest sum of absolute values that this tensor has had so far, and for a gradient SAFETY * eps_of_sums * sqrt(n)
of an average gradient more, since what cancels out leaves the rounding of its terms. It never exceeds `MOST`: a larger
difference is no rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from repros.diagnose.compare.recording import Step
from repros.diagnose.compare.summaries import Summary, numel

SAFETY = 4.0
MOST = 0.1

_EPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
    "float8_e4m3fn": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}


@dataclass(frozen=True)
class Tolerance:
    """What explains a difference at one step."""

    dtype: str
    """The coarsest format of a module's output, a parameter or a gradient."""
    modules: int
    """Modules that a forward pass goes through."""
    terms: int
    """Of the largest sum: elements that a gradient or an output is a sum over."""
    step: int

    @property
    def sums(self) -> float:
        """How much of a sum may be rounding."""
        return SAFETY * min(_EPS[self.dtype], _EPS["float32"]) * math.sqrt(self.terms)

    @property
    def relative(self) -> float:
        """The largest relative difference that rounding explains."""
        return min(MOST, self.step * (SAFETY * _EPS[self.dtype] * math.sqrt(self.modules) + self.sums))

    def __str__(self) -> str:
        """Say what it follows from."""
        return (
            f"{self.relative:.1g} at step {self.step}: {self.dtype} (eps {_EPS[self.dtype]:.1e}), "
            f"{self.modules} modules in a row, sums of {self.terms} terms"
        )


def tolerance_of(steps: tuple[Step, Step], number: int) -> Tolerance:
    """Return what explains a difference between two runs at a step.

    Args:
        steps: that step of both runs, or that evaluation.
        number: its place among the steps compared, from 1; of what comes after a step, that of the step.
    """
    tensors = [each for step in steps for each in _tensors(step)]
    dtypes = [each["dtype"] for each in tensors if each["dtype"] in _EPS]
    dtype = max(dtypes, key=_EPS.__getitem__, default="float32")
    passes = [each for step in steps for rank in step.ranks for each in rank.get("passes", ())]
    return Tolerance(
        dtype,
        max((len(each["outputs"]) for each in passes), default=1) or 1,
        max((_terms(step) for step in steps), default=1),
        number,
    )


def at_least(one: Tolerance, other: Tolerance) -> Tolerance:
    """Return a tolerance with the coarser format, the more modules and the longer sum of two, at the first's step."""
    dtype = max(one.dtype, other.dtype, key=_EPS.__getitem__)
    return Tolerance(dtype, max(one.modules, other.modules), max(one.terms, other.terms), one.step)


def _tensors(step: Step) -> Iterator[Summary]:
    for rank in step.ranks:
        for field in ("gradients", "before", "parameters"):
            yield from (each for each in rank.get(field, {}).values() if each is not None and "dtype" in each)
        for each in rank.get("passes", ()):
            for outputs in each["outputs"].values():
                yield from (output for output in outputs if "dtype" in output)


def _terms(step: Step) -> int:
    """Return over how many elements the longest sum of a step goes: of a row of weights, or of a batch."""
    rows = 0
    for rank in step.ranks:
        for each in rank.get("passes", ()):
            outputs = [output for found in each["outputs"].values() for output in found if output.get("shape")]
            rows += max((numel(output) // max(output["shape"][-1], 1) for output in outputs), default=0)
    gradients = [
        each for rank in step.ranks for each in rank.get("gradients", {}).values() if each and each.get("shape")
    ]
    longest: int = max(1, rows, *(numel(each) // max(each["shape"][0], 1) for each in gradients))
    return longest
