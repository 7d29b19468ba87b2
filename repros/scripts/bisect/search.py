"""Search for the boundaries of a failure in a sequence of releases, with few examinations. Pure.

The releases are numbers here, oldest first. The search assumes that the affected releases are one unbroken run, that
it starts inside this run, and that the releases before and after it are free of the failure. Releases without an
answer are skipped. Those next to a boundary are listed as the reason why it is not tighter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

T = TypeVar("T")


class Answer(StrEnum):
    """The answer of one release."""

    YES = "yes"
    """The release has the failure."""
    NO = "no"
    """The release is free of the failure."""
    UNKNOWN = "unknown"
    """The release cannot be installed, fails in another way, or does not always end alike."""


class Asker(Protocol):
    """Source of answers, which can examine several releases at once."""

    @property
    def width(self) -> int:
        """Number of releases that it examines at once, at least 1."""

    def begin(self, number: int) -> None:
        """Begin to examine a release by its number; called at most once for each."""

    def next_answer(self) -> tuple[int, Answer]:
        """Wait for the next answer, in any order; return it with the release's number."""


@dataclass(frozen=True)
class Boundary:
    """The smallest proved bracket: the failure begins or ends between these two releases."""

    affected: int
    """The outermost release known to have the failure."""
    free: int | None
    """The nearest release beyond it known to be free of the failure; None if there is none."""
    unknown: tuple[int, ...]
    """Releases without an answer between the two, or from `affected` to the last candidate if `free` is None."""


@dataclass(frozen=True)
class Boundaries:
    """Both boundaries of a failure, and the answers that prove them."""

    begins: Boundary | None
    """Towards older releases; None if the start does not have the failure."""
    ends: Boundary | None
    """Towards newer releases; None if the start does not have the failure."""
    answers: Mapping[int, Answer]
    """Every answer, in the order of the questions."""


def search(older: Sequence[int], start: int, newer: Sequence[int], asker: Asker) -> Boundaries:
    """Find where the failure of `start` begins and ends.

    Both sides are searched at once, and each at several releases if the asker is wide enough. The search does not wait
    for answers that can no longer change a boundary.

    Args:
        older: releases before the start, oldest first.
        start: a release that should have the failure, examined first.
        newer: releases after it, oldest first.
        asker: gives the answers.
    """
    answers: dict[int, Answer] = {}
    begins, ends = gaps = _Gap(start, older[::-1]), _Gap(start, newer)
    asker.begin(start)
    waiting = 1
    while start not in answers or any(gap.is_open for gap in gaps):
        while waiting < asker.width and (number := max(gaps, key=lambda gap: gap.share).choose()) is not None:
            asker.begin(number)
            waiting += 1
        number, answer = asker.next_answer()
        waiting -= 1
        answers[number] = answer
        if answers.get(start, Answer.YES) is not Answer.YES:
            return Boundaries(None, None, answers)
        for gap in gaps:
            gap.learn(number, answer)
    return Boundaries(begins.boundary, ends.boundary, answers)


def scan(older: Sequence[int], start: int, newer: Sequence[int], asker: Asker) -> Boundaries:
    """Find the same by examining every release; a search must agree with it.

    The boundaries are those of the affected run around the start, even if releases beyond it have the failure again.
    """
    numbers = [*older, start, *newer]
    for number in numbers:
        asker.begin(number)
    answers = dict(asker.next_answer() for _ in numbers)
    begins = ends = None
    if answers[start] is Answer.YES:
        begins = _walk(start, older[::-1], answers)
        ends = _walk(start, newer, answers)
    return Boundaries(begins, ends, answers)


def max_questions(older: Sequence[int], newer: Sequence[int]) -> int:
    """Return the most releases that a search examines if each gives an answer."""
    return 1 + len(older).bit_length() + len(newer).bit_length()


class _Gap:
    """The releases between an affected and a free one, on one side of the start.

    They are numbered by their distance from the start outwards, from 0.
    """

    def __init__(self, start: int, beyond: Sequence[int]) -> None:
        """Begin with the assumption that a release beyond the last one is free.

        Args:
            start: a release known to have the failure.
            beyond: the releases from it outwards, nearest first.
        """
        self._start, self._beyond = start, beyond
        self._affected, self._free = -1, len(beyond)
        self._untried = list(range(len(beyond)))
        self._asked, self._unknown = list[int](), list[int]()

    @property
    def is_open(self) -> bool:
        """Whether an answer can make it smaller."""
        return bool(self._untried or self._asked)

    @property
    def share(self) -> float:
        """The untried releases per pending answer, after one more is begun; 0 if none is left."""
        return len(self._untried) / (len(self._asked) + 1)

    def choose(self) -> int | None:
        """Return the release to examine next, which halves the gap; None if none is left.

        A release whose answer is pending counts as one without an answer: the next choices are far from it.
        """
        if not self._untried:
            return None
        nth = len(self._unknown) + len(self._asked) + 1
        distance = self._untried.pop(int(len(self._untried) * _van_der_corput(nth)))
        self._asked.append(distance)
        return self._beyond[distance]

    def learn(self, number: int, answer: Answer) -> None:
        """Make the gap smaller by the answer of a release; an answer outside the gap changes nothing."""
        distance = self._beyond.index(number) if number in self._beyond else -1
        if distance not in self._asked:
            return
        self._asked.remove(distance)
        match answer:
            case Answer.YES:
                self._affected = distance
            case Answer.NO:
                self._free = distance
            case Answer.UNKNOWN:
                self._unknown.append(distance)
        for distances in (self._untried, self._asked, self._unknown):
            distances[:] = [distance for distance in distances if self._affected < distance < self._free]

    @property
    def boundary(self) -> Boundary:
        """The bracket that the answers prove."""
        affected = self._start if self._affected < 0 else self._beyond[self._affected]
        free = None if self._free == len(self._beyond) else self._beyond[self._free]
        return Boundary(affected, free, tuple(sorted(self._beyond[distance] for distance in self._unknown)))


def _van_der_corput(nth: int) -> float:
    """Return the nth number of van der Corput's sequence in base 2: 1/2, 1/4, 3/4, 1/8, 5/8, ...

    It is the position of the next choice, as a fraction of the gap, after n - 1 unknown answers. Releases without an
    answer come in runs, and the middle's neighbours are likely to be in the middle's run. Each further choice is
    therefore far from those before it.
    """
    number, share = 0.0, 0.5
    while nth:
        number += share * (nth & 1)
        nth >>= 1
        share /= 2
    return number


def _walk(affected: int, beyond: Sequence[int], answers: Mapping[int, Answer]) -> Boundary:
    """Return the boundary that known answers prove, from an affected release outwards."""
    unknown = list[int]()
    for number in beyond:
        match answers[number]:
            case Answer.YES:
                affected, unknown = number, []
            case Answer.NO:
                return Boundary(affected, number, tuple(sorted(unknown)))
            case Answer.UNKNOWN:
                unknown.append(number)
    return Boundary(affected, None, tuple(sorted(unknown)))


def confirm(run: Callable[[], T], needed: int, of: int, nothing: T) -> T:
    """Return the answer that `needed` of at most `of` runs give, or `nothing`.

    It stops as soon as the answer is decided: a release that always ends alike costs `needed` runs.

    Args:
        run: runs the release once.
        needed: more than half of `of`; only one answer can then reach it.
        of: the most runs.
        nothing: the result of a run without an answer, which does not count.
    """
    votes: Counter[T] = Counter()
    for left in reversed(range(of)):
        answer = run()
        if answer != nothing:
            votes[answer] += 1
            if votes[answer] >= needed:
                return answer
        if max(votes.values(), default=0) + left < needed:
            break
    return nothing
