"""Search for the boundaries of a failure in a sequence of releases, with few questions. Pure.

The releases are numbers here, oldest first. The search assumes that the affected releases are one unbroken run, that
it starts inside this run, and that the releases before and after it are free of the failure. Releases without an
answer are skipped. If they lie next to a boundary they are listed, as the reason why it is not tighter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """The answer of one release."""

    YES = "yes"
    """The release has the failure."""
    NO = "no"
    """The release is free of the failure."""
    UNKNOWN = "unknown"
    """The release cannot be installed, fails in another way, or does not always end alike."""


Ask = Callable[[int], Answer]
"""Return the answer for the release of a number; called at most once for each."""


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
    """Towards newer releases, likewise."""
    answers: Mapping[int, Answer]
    """Every answer, in the order of the questions."""


def search(older: Sequence[int], start: int, newer: Sequence[int], ask: Ask) -> Boundaries:
    """Find where the failure of `start` begins and ends.

    Args:
        older: releases before the start, oldest first.
        start: a release that should have the failure, asked first.
        newer: releases after it, oldest first.
        ask: returns the answer of one release.
    """
    answers: dict[int, Answer] = {}

    def ask_and_keep(number: int) -> Answer:
        answers[number] = ask(number)
        return answers[number]

    begins = ends = None
    if ask_and_keep(start) is Answer.YES:
        begins = _narrow(start, older[::-1], ask_and_keep)
        ends = _narrow(start, newer, ask_and_keep)
    return Boundaries(begins, ends, answers)


def scan(older: Sequence[int], start: int, newer: Sequence[int], ask: Ask) -> Boundaries:
    """Find the same by asking every release; a search must agree with it.

    The boundaries are those of the affected run around the start, even if releases beyond it have the failure again.
    """
    answers = {number: ask(number) for number in (*older, start, *newer)}
    begins = ends = None
    if answers[start] is Answer.YES:
        begins = _walk(start, older[::-1], answers)
        ends = _walk(start, newer, answers)
    return Boundaries(begins, ends, answers)


def max_questions(older: Sequence[int], newer: Sequence[int]) -> int:
    """Return the most releases that a search asks if each gives an answer."""
    return 1 + len(older).bit_length() + len(newer).bit_length()


def _narrow(affected: int, beyond: Sequence[int], ask: Ask) -> Boundary:
    """Halve the gap between an affected and a free release until no release in it is left to ask.

    Args:
        affected: a release known to have the failure.
        beyond: the releases from it outwards, nearest first. The search begins as if one behind the last were free.
        ask: returns the answer of one release.
    """
    free: int | None = None
    untried, unknown = list(beyond), list[int]()
    while untried:
        number = untried[int(len(untried) * _van_der_corput(len(unknown) + 1))]
        at = untried.index(number)
        match ask(number):
            case Answer.YES:
                affected, untried = number, untried[at + 1 :]
                unknown = [place for place in unknown if beyond.index(place) > beyond.index(number)]
            case Answer.NO:
                free, untried = number, untried[:at]
                unknown = [place for place in unknown if beyond.index(place) < beyond.index(number)]
            case Answer.UNKNOWN:
                untried.remove(number)
                unknown.append(number)
    return Boundary(affected, free, tuple(sorted(unknown)))


def _van_der_corput(nth: int) -> float:
    """Return the nth number of van der Corput's sequence in base 2: 1/2, 1/4, 3/4, 1/8, 5/8, ...

    It is the place of the next question, as a share of the gap, after n - 1 unknown answers. Releases without an answer
    come in runs, and the middle's neighbours are likely to lie in the middle's run. So each further question is far
    from those before it.
    """
    number, share = 0.0, 0.5
    while nth:
        number += share * (nth & 1)
        nth >>= 1
        share /= 2
    return number


def _walk(affected: int, beyond: Sequence[int], answers: Mapping[int, Answer]) -> Boundary:
    """Return the boundary that known answers give, read outwards from an affected release."""
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


def confirm(run: Callable[[], Answer], needed: int, of: int) -> Answer:
    """Return the answer that `needed` of at most `of` runs give, or UNKNOWN.

    It stops as soon as the answer is decided, so a release that always ends alike costs `needed` runs.

    Args:
        run: runs the release once.
        needed: more than half of `of`, so that only one answer can reach it.
        of: the most runs.
    """
    votes: Counter[Answer] = Counter()
    for left in reversed(range(of)):
        votes[run()] += 1
        for answer in (Answer.YES, Answer.NO):
            if votes[answer] >= needed:
                return answer
        if max(votes[Answer.YES], votes[Answer.NO]) + left < needed:
            break
    return Answer.UNKNOWN
