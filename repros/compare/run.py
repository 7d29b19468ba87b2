"""Two recordings, compared from their first common step to the first difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from repros.compare.differ import Compared, Differ, Difference
from repros.compare.measure import Worst
from repros.compare.recording import Recording, Step
from repros.compare.tolerance import Tolerance
from repros.errors import ReprosError

_RANDOM = {"batch", "parameter before the step", "output of module"}
"""What differs first where random numbers do."""


@dataclass(frozen=True)
class Result:
    """What a comparison gave."""

    steps: int
    """How many steps are equal."""
    same_bits: int
    """How many of these, from the first on, have the same bits in all that was compared."""
    offset: int
    """How many steps the first run had made before."""
    exact: bool
    difference: Difference | None
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
        ReprosError: one of them has no step to compare.
    """
    streams = (islice(one.steps(), offset, None), other.steps())
    differ, count, same_bits = Differ(exact=exact), 0, 0
    last: Compared | None = None
    notes = _Notes()
    while True:
        steps = tuple(next(stream, None) for stream in streams)
        if None in steps:
            break
        mine, theirs = steps
        assert mine is not None
        assert theirs is not None
        notes.look(mine, theirs)
        last = differ.compare(mine, theirs)
        if last.difference is not None:
            break
        same_bits += last.has_same_bits and same_bits == count
        count += 1
    difference = last.difference if last is not None else None
    if difference is None:
        difference = _end(steps, count, (one, other), offset)
    return Result(
        *(count, same_bits, offset, exact, difference),
        last.equal if last is not None and last.difference is not None else (),
        last.worst if last is not None else None,
        last.tolerance if last is not None else None,
        tuple(notes.texts(difference, count)),
    )


def _end(
    steps: tuple[Step | None, ...], count: int, runs: tuple[Recording, Recording], offset: int
) -> Difference | None:
    """Return the difference of a run that goes on where the other has ended.

    Raises:
        ReprosError: nothing was compared.
    """
    mine, theirs = steps
    if count == 0:
        which = "either run" if mine is theirs is None else f"the {'first' if mine is None else 'second'} run"
        after = f" after its first {offset} steps" if offset and mine is None else ""
        raise ReprosError(f"{which} made no step of an optimizer and no backward pass{after}; nothing can be compared.")
    if mine is None and theirs is None:
        return None
    texts = tuple(
        "makes it" if step is not None else f"has ended (exit code {run.code})"
        for step, run in zip(steps, runs, strict=True)
    )
    return Difference(
        "steps", f"which the {'first' if theirs is None else 'second'} run alone makes", (texts[0], texts[1])
    )


class _Notes:
    """What the reader should know beside the difference."""

    def __init__(self) -> None:
        self._unseeded = self._compiled = False

    def look(self, one: Step, other: Step) -> None:
        """Look at a step of both."""
        self._unseeded |= not (one.is_seeded and other.is_seeded)
        self._compiled |= any(rank["compiled"] for step in (one, other) for rank in step.ranks)

    def texts(self, difference: Difference | None, count: int) -> Iterator[str]:
        """Yield the notes."""
        is_random = difference is not None and difference.stage in _RANDOM and count == 0
        if is_random and self._unseeded:
            yield "a run seeds no random numbers of torch: with --seed N both begin with the same"
        if self._compiled:
            yield "a run compiles: from there on batches and outputs of modules are not compared"
