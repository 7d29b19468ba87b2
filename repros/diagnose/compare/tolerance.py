"""The differences between two runs that rounding alone explains, from number formats and lengths of sums.

A stored number is rounded to its format, by at most half of `eps`, once in each module that it passes. Rounding errors
of consecutive modules add like a random walk: with the square root of their number. A sum of n products is rounded n
times, in float32 or better, which adds with the square root of n. Each optimizer step adds the same error to the
parameters. So the tolerance at step t, relative to the largest sum of absolute values of this tensor so far, is

    SAFETY * t * (eps * sqrt(modules) + eps_of_sums * sqrt(n))

A gradient gets an additional SAFETY * eps_of_sums * sqrt(n) of an average gradient, because terms that cancel leave
their rounding errors. The tolerance never exceeds `MOST`: a larger difference is not rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from repros.diagnose.compare.recording import RecordedStep
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
    """The rounding differences to expect at one step."""

    dtype: str
    """The coarsest format of a module's output, a parameter or a gradient."""
    modules: int
    """Modules in a forward pass."""
    terms: int
    """Terms of the longest sum behind an element of a gradient or an output."""
    step: int

    @property
    def sums(self) -> float:
        """The relative rounding error of a sum."""
        return SAFETY * min(_EPS[self.dtype], _EPS["float32"]) * math.sqrt(self.terms)

    @property
    def relative(self) -> float:
        """The largest relative difference that rounding explains."""
        return min(MOST, self.step * (SAFETY * _EPS[self.dtype] * math.sqrt(self.modules) + self.sums))

    def __str__(self) -> str:
        """Return the tolerance and the quantities that determine it."""
        return (
            f"{self.relative:.1g} at step {self.step}: {self.dtype} (eps {_EPS[self.dtype]:.1e}), "
            f"{self.modules} modules in a row, sums of {self.terms} terms"
        )


def tolerance_of(steps: tuple[RecordedStep, RecordedStep], number: int) -> Tolerance:
    """Return the tolerance for a step of two runs.

    Args:
        steps: the step or the evaluation of both runs.
        number: the number of the compared step, from 1; for an evaluation, that of the step before it.
    """
    dtypes = [summary["dtype"] for step in steps for summary in _tensors(step) if summary["dtype"] in _EPS]
    dtype = max(dtypes, key=_EPS.__getitem__, default="float32")
    passes = [one_pass for step in steps for rank in step.ranks for one_pass in rank.get("passes", ())]
    return Tolerance(
        dtype,
        max((len(one_pass["outputs"]) for one_pass in passes), default=1) or 1,
        max((_terms(step) for step in steps), default=1),
        number,
    )


def at_least(one: Tolerance, other: Tolerance) -> Tolerance:
    """Return the maximum of two tolerances (format, modules and terms) at the step of the first."""
    dtype = max(one.dtype, other.dtype, key=_EPS.__getitem__)
    return Tolerance(dtype, max(one.modules, other.modules), max(one.terms, other.terms), one.step)


def _tensors(step: RecordedStep) -> Iterator[Summary]:
    for rank in step.ranks:
        for field in ("gradients", "before", "parameters"):
            tensors = rank.get(field, {}).values()
            yield from (tensor for tensor in tensors if tensor is not None and "dtype" in tensor)
        for one_pass in rank.get("passes", ()):
            for outputs in one_pass["outputs"].values():
                yield from (output for output in outputs if "dtype" in output)


def _terms(step: RecordedStep) -> int:
    """Return the number of terms of the longest sum of a step: over a row of weights, or over the rows of a batch."""
    rows = 0
    for rank in step.ranks:
        for one_pass in rank.get("passes", ()):
            tensors = (tensor for outputs in one_pass["outputs"].values() for tensor in outputs)
            outputs = [tensor for tensor in tensors if tensor.get("shape")]
            rows += max((numel(output) // max(output["shape"][-1], 1) for output in outputs), default=0)
    gradients = [gradient for rank in step.ranks for gradient in rank.get("gradients", {}).values()]
    shaped = [gradient for gradient in gradients if gradient and gradient.get("shape")]
    longest: int = max(1, rows, *(numel(gradient) // max(gradient["shape"][0], 1) for gradient in shaped))
    return longest
