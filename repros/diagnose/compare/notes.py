"""Notes on a comparison, in addition to its first difference."""

from __future__ import annotations

from collections.abc import Iterator

from repros.diagnose.compare.difference import Difference
from repros.diagnose.compare.recording import EVALUATION, RESULTS, STEP, RecordedStep

_RANDOM = {"batch", "parameter before the step", "parameter", "output of module", "result"}
"""The stages that differ first if random numbers differ."""


class Notes:
    """Collects the facts for the notes; all steps have the numbers of the second run."""

    def __init__(self, offset: int) -> None:
        """Start before the first step.

        Args:
            offset: the number of steps of the first run before the second run's first step.
        """
        self._offset = offset
        self._unseeded = self._compiled = self._has_steps = False
        self.alone: list[tuple[RecordedStep, bool]] = []
        """Evaluations that only one run has, each with whether it is the first run."""
        self.cut: list[RecordedStep] = []
        """Evaluations with too few recorded passes for a comparison."""
        self.later: tuple[RecordedStep, Difference] | None = None
        """The first different step after a different evaluation."""

    def add(self, one: RecordedStep, other: RecordedStep) -> None:
        """Add a step or evaluation of both runs."""
        self._has_steps |= one.kind == STEP
        self._unseeded |= not (one.is_seeded and other.is_seeded)
        self._compiled |= any(rank["compiled"] for step in (one, other) for rank in step.ranks)

    def texts(self, at: RecordedStep | None, difference: Difference | None) -> Iterator[str]:
        """Yield the notes.

        Args:
            at: the step of the first difference.
            difference: the first difference.
        """
        if at is not None and at.kind in {EVALUATION, RESULTS}:
            yield from self._of_steps()
        is_random = at is not None and difference is not None and difference.stage in _RANDOM and at.number < 2  # noqa: PLR2004
        if is_random and self._unseeded:
            yield "a run seeds no random numbers of torch: with --seed N both begin with the same"
        if self._compiled:
            yield "a run compiles: from that step on, batches and outputs of modules are not compared"
        for of_first in (True, False):
            steps = [step for step, is_first in self.alone if is_first is of_first]
            if steps:
                more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
                where = steps[0].where(self._offset)
                yield f"the {'first' if of_first else 'second'} run alone makes {where}{more}: these are not compared"
        if self.cut:
            where = self.cut[0].where(self._offset)
            yield f"{where} is not compared: it has too many passes to record, and a different number in each run"

    def _of_steps(self) -> Iterator[str]:
        """Yield the comparison of the steps after a different evaluation."""
        if self.later is not None:
            step, difference = self.later
            yield f"the first step that differs is {step.where(self._offset)}: {difference.text}"
        elif self._has_steps:
            yield "no step differs"
