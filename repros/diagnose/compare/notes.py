"""What the reader of a comparison should know beside its first difference."""

from __future__ import annotations

from collections.abc import Iterator

from repros.diagnose.compare.differ import Difference
from repros.diagnose.compare.recording import EVALUATION, RESULTS, STEP, Step

_RANDOM = {"batch", "parameter before the step", "parameter", "output of module", "result"}
"""What differs first where random numbers do."""


class Notes:
    """What was seen so far; all steps have the numbers of the second run."""

    def __init__(self, offset: int) -> None:
        """Begin before the first step, `offset` steps of the first run after its own."""
        self._offset = offset
        self._unseeded = self._compiled = self._has_steps = False
        self.alone: list[tuple[Step, bool]] = []
        """Evaluations of one run alone, each with whether it is the first run."""
        self.cut: list[Step] = []
        """Evaluations of which too little is recorded to compare them."""
        self.later: tuple[Step, Difference] | None = None
        """The first step that differs after an evaluation that does."""

    def look(self, one: Step, other: Step) -> None:
        """Look at what both runs have."""
        self._has_steps |= one.kind == STEP
        self._unseeded |= not (one.is_seeded and other.is_seeded)
        self._compiled |= any(rank["compiled"] for step in (one, other) for rank in step.ranks)

    def texts(self, at: Step | None, difference: Difference | None) -> Iterator[str]:
        """Yield the notes.

        Args:
            at: where the first difference is.
            difference: that difference.
        """
        if at is not None and at.kind in {EVALUATION, RESULTS}:
            yield from self._of_steps()
        is_random = at is not None and difference is not None and difference.stage in _RANDOM and at.number < 2  # noqa: PLR2004
        if is_random and self._unseeded:
            yield "a run seeds no random numbers of torch: with --seed N both begin with the same"
        if self._compiled:
            yield "a run compiles: from there on batches and outputs of modules are not compared"
        for which in (True, False):
            places = [step for step, is_first in self.alone if is_first is which]
            if places:
                more = f" and {len(places) - 1} more" if len(places) > 1 else ""
                where = places[0].where(self._offset)
                yield f"the {'first' if which else 'second'} run alone makes {where}{more}: these are not compared"
        if self.cut:
            where = self.cut[0].where(self._offset)
            yield f"too little is recorded to compare {where}: it has too many passes, and others in each run"

    def _of_steps(self) -> Iterator[str]:
        """Yield what became of the steps after an evaluation that differs."""
        if self.later is not None:
            step, found = self.later
            yield f"the first step that differs is {step.where(self._offset)}: {found.text}"
        elif self._has_steps:
            yield "no step differs"
