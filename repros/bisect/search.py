"""Where in a row of releases a failure begins and ends, found by asking few of them. Pure.

The releases are numbers here, oldest first. The failure is taken to hold for one unbroken run of them, somewhere
inside of which the search starts; before and after it they are free of it. Some may have no answer at all: those are
stepped round, and where they lie on a boundary they are named as what keeps it from being narrower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """What is known of one release."""

    YES = "yes"
    """It has the failure."""
    NO = "no"
    """It is free of it."""
    UNKNOWN = "unknown"
    """It cannot be installed, fails in another way, or does not always end alike."""


Ask = Callable[[int], Answer]
"""Answers for the release of that number; asked at most once for each."""


@dataclass(frozen=True)
class Boundary:
    """The smallest bracket that was proved: the failure comes or goes between these two releases."""

    affected: int
    """The outermost release that is known to have the failure."""
    free: int | None
    """The nearest release beyond it that is known to be free of it; None when no candidate is."""
    unknown: tuple[int, ...]
    """Releases between the two, none of which has an answer; all candidates beyond, if none is free."""


@dataclass(frozen=True)
class Finding:
    """Both ends of a failure, and what was asked to find them."""

    begins: Boundary | None
    """Towards older releases; None when the start itself does not have the failure."""
    ends: Boundary | None
    """Towards newer releases, likewise."""
    answers: Mapping[int, Answer]
    """Every answer, in the order in which it was given."""


def search(older: Sequence[int], start: int, newer: Sequence[int], ask: Ask) -> Finding:
    """Find where the failure that `start` has begins and ends.

    Args:
        older: releases before the start, oldest first.
        start: a release that is said to have the failure, which is asked first.
        newer: releases after it, oldest first.
        ask: answers for one release.
    """
    answers: dict[int, Answer] = {}

    def asked(number: int) -> Answer:
        answers[number] = ask(number)
        return answers[number]

    begins = ends = None
    if asked(start) is Answer.YES:
        begins = _narrow(start, older[::-1], asked)
        ends = _narrow(start, newer, asked)
    return Finding(begins, ends, answers)


def scan(older: Sequence[int], start: int, newer: Sequence[int], ask: Ask) -> Finding:
    """Find the same by asking every release: what a search has to agree with.

    Takes the run of affected releases round the start, even where others beyond it have the failure once more.
    """
    answers = {number: ask(number) for number in (*older, start, *newer)}
    begins = ends = None
    if answers[start] is Answer.YES:
        begins = _walk(start, older[::-1], answers)
        ends = _walk(start, newer, answers)
    return Finding(begins, ends, answers)


def most(older: Sequence[int], newer: Sequence[int]) -> int:
    """Return how many releases a search asks at most when all of them have an answer."""
    return 1 + len(older).bit_length() + len(newer).bit_length()


def _narrow(affected: int, beyond: Sequence[int], ask: Ask) -> Boundary:
    """Halve what lies between an affected release and a free one until nothing there is left to ask.

    Args:
        affected: a release known to have the failure.
        beyond: those from it outwards, nearest first. What lies behind the last counts as free until it is needed.
        ask: answers for one release.
    """
    free: int | None = None
    untried, unknown = list(beyond), list[int]()
    while untried:
        number = untried[int(len(untried) * _spread(len(unknown) + 1))]
        at = untried.index(number)
        match ask(number):
            case Answer.YES:
                affected, untried = number, untried[at + 1 :]
                unknown = [one for one in unknown if beyond.index(one) > beyond.index(number)]
            case Answer.NO:
                free, untried = number, untried[:at]
                unknown = [one for one in unknown if beyond.index(one) < beyond.index(number)]
            case Answer.UNKNOWN:
                untried.remove(number)
                unknown.append(number)
    return Boundary(affected, free, tuple(sorted(unknown)))


def _spread(nth: int) -> float:
    """Return the nth of 1/2, 1/4, 3/4, 1/8, 5/8, ...: where to ask next after that many answers less one were unknown.

    Releases without an answer come in runs. The middle's neighbours are as likely to lie in the run as the middle, so
    each further question is put far from those before (van der Corput's sequence in base 2).
    """
    place, share = 0.0, 0.5
    while nth:
        place += share * (nth & 1)
        nth >>= 1
        share /= 2
    return place


def _walk(affected: int, beyond: Sequence[int], answers: Mapping[int, Answer]) -> Boundary:
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
    """Return the answer that `needed` of at most `of` runs give; UNKNOWN when none reaches that.

    Stops as soon as it is decided, so that what always ends alike costs `needed` runs.

    Args:
        run: runs the release once.
        needed: more than half of `of`, so that at most one answer can reach it.
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
