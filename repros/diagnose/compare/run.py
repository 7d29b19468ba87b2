"""Two recordings, compared from their first common step to the first difference.

Evaluations and the end are compared where both runs have them. A difference in an evaluation does not end the
comparison of the steps: what comes of them is a note. What the programs got besides is named only where nothing else
differs, not even by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from repros.diagnose.compare.differ import Compared, Differ, Difference
from repros.diagnose.compare.measure import Worst
from repros.diagnose.compare.notes import Notes
from repros.diagnose.compare.recording import END, EVALUATION, RESULTS, STEP, Recording, Step
from repros.diagnose.compare.results import compare_results
from repros.diagnose.compare.tolerance import Tolerance
from repros.model.errors import ReprosError


@dataclass(frozen=True)
class Result:
    """What a comparison gave."""

    steps: int
    """How many steps are equal, up to the difference."""
    same_bits: int
    """How many of these, from the first on, have the same bits in all that was compared."""
    evaluations: int
    """How many evaluations are equal, up to the difference."""
    results: int
    """How many results of other calls are equal, up to the difference."""
    has_same_bits: bool
    """Whether all that is equal, evaluations and the end too, has the same bits."""
    offset: int
    """How many steps the first run had made before."""
    exact: bool
    difference: Difference | None
    at: Step | None
    """Where the difference is, in the numbers of the second run."""
    equal: tuple[str, ...]
    """What is equal in the step of the difference, before it."""
    worst: Worst | None
    tolerance: Tolerance | None
    """That of the last step that was compared."""
    notes: tuple[str, ...]


def compare(one: Recording, other: Recording, *, offset: int = 0, exact: bool = False) -> Result:
    """Compare two recordings.

    Args:
        one: the reference.
        other: the run that is asked about.
        offset: how many steps of the reference come before the other's first.
        exact: whether every bit counts; else what rounding explains does not.

    Raises:
        ReprosError: they have nothing that can be compared.
    """
    comparison = _Comparison((one, other), offset, exact=exact)
    for mine, theirs in _in_pairs(one, other, offset):
        if not comparison.look(mine, theirs):
            break
    return comparison.result()


def _in_pairs(one: Recording, other: Recording, offset: int) -> Iterator[tuple[Step | None, Step | None]]:
    """Yield what both runs have at the same place of their order, or one alone; at last twice None."""
    streams = one.steps(), other.steps()
    first = (offset, 1) if offset else (0, 0)
    heads = [next((step for step in streams[0] if step.key >= first), None), next(streams[1], None)]
    while any(heads):
        keys = [
            None if head is None else (head.number + (offset if place else 0), head.key[1])
            for place, head in enumerate(heads)
        ]
        chosen = min(key for key in keys if key is not None)
        here = [key == chosen for key in keys]
        yield heads[0] if here[0] else None, heads[1] if here[1] else None
        for place in (0, 1):
            if here[place]:
                heads[place] = next(streams[place], None)


class _Comparison:
    """What has been found so far."""

    def __init__(self, runs: tuple[Recording, Recording], offset: int, *, exact: bool) -> None:
        """Begin before anything is compared."""
        self._differ, self._exact = Differ(exact=exact), exact
        self._runs, self._offset = runs, offset
        self._notes = Notes(offset)
        self._has = [False, False]
        """Whether each run has anything."""
        self._counts = {STEP: 0, EVALUATION: 0, RESULTS: 0, END: 0}
        """Of those that are equal, up to the difference."""
        self._same_bits, self._has_same_bits = 0, True
        self._found: tuple[Step, Difference, tuple[str, ...]] | None = None
        self._effect: tuple[Step, Difference, tuple[str, ...]] | None = None
        """The first difference in what the programs got."""
        self._last: Compared | None = None

    def look(self, mine: Step | None, theirs: Step | None) -> bool:
        """Look at what both runs have at one place, or one alone; return whether what follows matters."""
        self._has = [self._has[0] or mine is not None, self._has[1] or theirs is not None]
        if mine is None or theirs is None:
            return self._look_at_one(mine, theirs)
        if mine.kind != STEP and self._found is not None:
            return True
        if mine.kind == RESULTS:
            self._look_at_results(mine, theirs)
            return True
        self._notes.look(mine, theirs)
        if mine.kind == EVALUATION and _is_cut(mine, theirs):
            self._notes.cut.append(theirs)
            return True
        compared = self._differ.compare(mine, theirs)
        if compared.difference is not None:
            return self._differs(compared.difference, theirs, compared)
        self._count(theirs, compared)
        return True

    def _look_at_results(self, mine: Step, theirs: Step) -> None:
        """Look at what the programs got, but for what one that resumes gets as it begins."""
        if self._effect is None and (theirs.number or not self._offset):
            found, compared = compare_results(mine, theirs, exact=self._exact)
            self._counts[RESULTS] += compared - (found is not None)
            self._effect = (theirs, found, ()) if found is not None else None

    def _look_at_one(self, mine: Step | None, theirs: Step | None) -> bool:
        there = theirs if mine is None else replace(mine, number=mine.number - self._offset)
        assert there is not None
        if there.kind == EVALUATION:
            self._notes.alone.append((there, theirs is None))
        if there.kind != STEP or not all(self._has):
            return True
        texts = [f"has ended (exit code {run.code})" for run in self._runs]
        texts[0 if theirs is None else 1] = "makes it"
        what = f"which the {'first' if theirs is None else 'second'} run alone makes"
        return self._differs(Difference("steps", what, (texts[0], texts[1])), there, None)

    def _count(self, at: Step, compared: Compared) -> None:
        if self._found is not None:
            return
        self._last = compared
        self._has_same_bits &= compared.has_same_bits
        if at.kind == STEP:
            self._same_bits += compared.has_same_bits and self._same_bits == self._counts[STEP]
        self._counts[at.kind] += 1

    def _differs(self, difference: Difference, at: Step, compared: Compared | None) -> bool:
        """Take a difference; return whether what follows matters."""
        if self._found is not None:
            self._notes.later = (at, difference)
            return False
        self._found = (at, difference, compared.equal if compared is not None else ())
        self._last = compared or self._last
        return at.kind == EVALUATION

    def result(self) -> Result:
        """Return what was found.

        Raises:
            ReprosError: nothing was compared.
        """
        if self._found is None and self._has_same_bits:
            self._found = self._effect
        if self._found is None and not any(self._counts.values()):
            raise ReprosError(self._why_nothing())
        at, difference, equal = self._found or (None, None, ())
        return Result(
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
            worst=self._last.worst if self._last is not None else None,
            tolerance=self._last.tolerance if self._last is not None else None,
            notes=tuple(self._notes.texts(at, difference)),
        )

    def _why_nothing(self) -> str:
        if all(self._has):
            return "the runs have no step, no evaluation and no end in common; nothing can be compared."
        which = "either run" if not any(self._has) else f"the {'second' if self._has[0] else 'first'} run"
        after = f" after its first {self._offset} steps" if self._offset and not self._has[0] else ""
        what = "made no step of an optimizer and no backward pass, and called no module"
        return f"{which} {what}{after}; nothing can be compared."


def _is_cut(one: Step, other: Step) -> bool:
    """Return whether an evaluation has passes that are not recorded, and not the same ones in both runs."""
    shapes = [[len(rank["passes"]) for rank in step.ranks] for step in (one, other)]
    return shapes[0] != shapes[1] and any(rank["cut"] for step in (one, other) for rank in step.ranks)
