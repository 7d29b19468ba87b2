"""Compare two recordings from their first common step to the first difference.

Evaluations and final states are compared if both runs have them. A difference in an evaluation does not end the
comparison of the steps, whose first difference becomes a note. Results of other calls are reported only if all else is
bitwise equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from repros.diagnose.compare.differ import Differ, StepComparison
from repros.diagnose.compare.difference import Difference
from repros.diagnose.compare.recording import END, EVALUATION, RESULTS, STEP, RecordedStep, Recording
from repros.diagnose.compare.results import compare_results
from repros.diagnose.compare.tolerance import Tolerance
from repros.diagnose.compare.tolerance_check import LargestDifference
from repros.model.errors import ReprosError

_RANDOM = {"batch", "parameter before the step", "parameter", "output of module", "result"}
"""The stages that differ first if random numbers differ."""


@dataclass(frozen=True)
class CompareResult:
    """The result of a comparison."""

    steps: int
    """Number of equal steps before the difference."""
    same_bits: int
    """Number of bitwise equal steps, from the first on."""
    evaluations: int
    """Number of equal evaluations before the difference."""
    results: int
    """Number of equal results of other calls before the difference."""
    has_same_bits: bool
    """Whether all that is equal is bitwise equal, including evaluations and the final state."""
    offset: int
    """Number of steps of the first run before the second run's first step."""
    exact: bool
    difference: Difference | None
    at: RecordedStep | None
    """The step of the difference, with the number of the second run."""
    equal: tuple[str, ...]
    """The equal stages in the step of the difference."""
    largest: LargestDifference | None
    tolerance: Tolerance | None
    """The tolerance of the last compared step."""
    notes: tuple[str, ...]


def compare(one: Recording, other: Recording, *, offset: int = 0, exact: bool = False) -> CompareResult:
    """Compare two recordings.

    Args:
        one: the reference.
        other: the run to compare with it.
        offset: number of steps of the reference before the other run's first step.
        exact: whether to require bitwise equality; otherwise differences by rounding are tolerated.

    Raises:
        ReprosError: they have nothing in common to compare.
    """
    comparison = _Comparison((one, other), offset, exact=exact)
    for mine, theirs in _in_pairs(one, other, offset):
        if not comparison.add(mine, theirs):
            break
    return comparison.result()


def _in_pairs(
    one: Recording, other: Recording, offset: int
) -> Iterator[tuple[RecordedStep | None, RecordedStep | None]]:
    """Yield the steps of both runs in pairs, in their order, with None for a step that one run lacks."""
    streams = one.steps(), other.steps()
    first = (offset, 1) if offset else (0, 0)
    heads = [next((step for step in streams[0] if step.key >= first), None), next(streams[1], None)]
    while any(heads):
        keys = [
            None if head is None else (head.number + (offset if run else 0), head.key[1])
            for run, head in enumerate(heads)
        ]
        earliest = min(key for key in keys if key is not None)
        has_step = [key == earliest for key in keys]
        yield heads[0] if has_step[0] else None, heads[1] if has_step[1] else None
        for run in (0, 1):
            if has_step[run]:
                heads[run] = next(streams[run], None)


class _Comparison:
    """The state of a comparison."""

    def __init__(self, runs: tuple[Recording, Recording], offset: int, *, exact: bool) -> None:
        self._differ, self._exact = Differ(exact=exact), exact
        self._runs, self._offset = runs, offset
        self._notes = Notes(offset)
        self._has_any = [False, False]
        """Whether each run has a step, an evaluation, results or a final state."""
        self._counts = {STEP: 0, EVALUATION: 0, RESULTS: 0, END: 0}
        """Of the equal ones before the difference."""
        self._same_bits, self._has_same_bits = 0, True
        self._first: tuple[RecordedStep, Difference, tuple[str, ...]] | None = None
        """The first difference, with its step and the equal stages before it."""
        self._first_result: tuple[RecordedStep, Difference, tuple[str, ...]] | None = None
        """The first difference in the results of other calls."""
        self._last: StepComparison | None = None

    def add(self, mine: RecordedStep | None, theirs: RecordedStep | None) -> bool:
        """Compare the next step of both runs, of which one may lack it; return whether to continue."""
        self._has_any = [self._has_any[0] or mine is not None, self._has_any[1] or theirs is not None]
        if mine is None or theirs is None:
            return self._add_unpaired(mine, theirs)
        if mine.kind != STEP and self._first is not None:
            return True
        if mine.kind == RESULTS:
            self._add_results(mine, theirs)
            return True
        self._notes.add(mine, theirs)
        if mine.kind == EVALUATION and _is_cut(mine, theirs):
            self._notes.cut.append(theirs)
            return True
        compared = self._differ.compare(mine, theirs)
        if compared.difference is not None:
            return self._add_difference(compared.difference, theirs, compared)
        self._count(theirs, compared)
        return True

    def _add_results(self, mine: RecordedStep, theirs: RecordedStep) -> None:
        """Compare the results of other calls, except those before step 1 of a run that resumes."""
        if self._first_result is None and (theirs.number or not self._offset):
            difference, compared = compare_results(mine, theirs, exact=self._exact)
            self._counts[RESULTS] += compared - (difference is not None)
            self._first_result = (theirs, difference, ()) if difference is not None else None

    def _add_unpaired(self, mine: RecordedStep | None, theirs: RecordedStep | None) -> bool:
        step = theirs if mine is None else replace(mine, number=mine.number - self._offset)
        assert step is not None
        if step.kind == EVALUATION:
            self._notes.alone.append((step, theirs is None))
        if step.kind != STEP or not all(self._has_any):
            return True
        texts = [f"has ended (exit code {run.code})" for run in self._runs]
        texts[0 if theirs is None else 1] = "makes it"
        what = f"which the {'first' if theirs is None else 'second'} run alone makes"
        return self._add_difference(Difference("steps", what, (texts[0], texts[1])), step, None)

    def _count(self, at: RecordedStep, compared: StepComparison) -> None:
        if self._first is not None:
            return
        self._last = compared
        self._has_same_bits &= compared.has_same_bits
        if at.kind == STEP:
            self._same_bits += compared.has_same_bits and self._same_bits == self._counts[STEP]
        self._counts[at.kind] += 1

    def _add_difference(self, difference: Difference, at: RecordedStep, compared: StepComparison | None) -> bool:
        """Record a difference; return whether to continue."""
        if self._first is not None:
            self._notes.later = (at, difference)
            return False
        self._first = (at, difference, compared.equal if compared is not None else ())
        self._notes.on_difference = compared.notes if compared is not None else ()
        self._last = compared or self._last
        return at.kind == EVALUATION

    def result(self) -> CompareResult:
        """Return the result.

        Raises:
            ReprosError: nothing was compared.
        """
        if self._first is None and self._has_same_bits:
            self._first = self._first_result
        if self._first is None and not any(self._counts.values()):
            raise ReprosError(self._nothing_compared())
        at, difference, equal = self._first or (None, None, ())
        return CompareResult(
            steps=self._counts[STEP],
            same_bits=self._same_bits,
            evaluations=self._counts[EVALUATION],
            results=self._counts[RESULTS],
            has_same_bits=self._has_same_bits,
            offset=self._offset,
            exact=self._exact,
            difference=difference,
            at=at,
            equal=equal,
            largest=self._last.largest if self._last is not None else None,
            tolerance=self._last.tolerance if self._last is not None else None,
            notes=tuple(self._notes.texts(at, difference)),
        )

    def _nothing_compared(self) -> str:
        if all(self._has_any):
            return "the runs have no step, no evaluation and no final state in common; nothing can be compared."
        which = "either run" if not any(self._has_any) else f"the {'second' if self._has_any[0] else 'first'} run"
        after = f" after its first {self._offset} steps" if self._offset and not self._has_any[0] else ""
        missing = "made no step of an optimizer and no backward pass, and called no module"
        return f"{which} {missing}{after}; nothing can be compared."


def _is_cut(one: RecordedStep, other: RecordedStep) -> bool:
    """Return whether an evaluation has passes that are not recorded, and not the same ones in both runs."""
    shapes = [[len(rank["passes"]) for rank in step.ranks] for step in (one, other)]
    return shapes[0] != shapes[1] and any(rank["cut"] for step in (one, other) for rank in step.ranks)


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
        self.on_difference: tuple[str, ...] = ()
        """The notes on the first difference."""
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
        yield from self.on_difference
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
