"""The search, compared with asking every release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.bisect.search import Answer, Boundaries, Boundary, confirm, max_questions, scan, search

YES, NO, UNKNOWN = Answer


@dataclass(frozen=True)
class Row:
    """Releases with their true answers: an unbroken affected run, and some releases without an answer."""

    truth: tuple[Answer, ...]
    start: int

    @property
    def older(self) -> list[int]:
        return list(range(self.start))

    @property
    def newer(self) -> list[int]:
        return list(range(self.start + 1, len(self.truth)))


@st.composite
def rows(draw: st.DrawFn, *, unknowns: bool = True) -> Row:
    size = draw(st.integers(1, 80))
    first = draw(st.integers(0, size - 1))
    last = draw(st.integers(first, size - 1))
    start = draw(st.integers(first, last))
    truth = [YES if first <= number <= last else NO for number in range(size)]
    for _ in range(draw(st.integers(0, 4)) if unknowns else 0):
        begin, length = draw(st.integers(0, size)), draw(st.integers(1, 20))
        for number in range(begin, min(begin + length, size)):
            if number != start:
                truth[number] = UNKNOWN
    return Row(tuple(truth), start)


def true_boundaries(row: Row) -> tuple[Boundary, Boundary]:
    """Return both boundaries, determined in another way than by either function."""
    yes = [n for n, answer in enumerate(row.truth) if answer is YES]
    no = [n for n, answer in enumerate(row.truth) if answer is NO]
    first, last, size = min(yes), max(yes), len(row.truth)
    below = max((n for n in no if n < first), default=None)
    above = min((n for n in no if n > last), default=None)
    begins = Boundary(first, below, tuple(range(-1 if below is None else below, first))[1:])
    ends = Boundary(last, above, tuple(range(last + 1, size if above is None else above)))
    return begins, ends


class Oracle:
    """Source of true answers that counts the questions."""

    def __init__(self, truth: tuple[Answer, ...]) -> None:
        self.truth = truth
        self.asked: list[int] = []

    def __call__(self, number: int) -> Answer:
        self.asked.append(number)
        return self.truth[number]


@given(rows())
def test_a_search_and_a_scan_find_the_true_boundaries(row: Row) -> None:
    oracle = Oracle(row.truth)
    found = search(row.older, row.start, row.newer, oracle)
    assert (found.begins, found.ends) == true_boundaries(row)
    everything = scan(row.older, row.start, row.newer, row.truth.__getitem__)
    assert (everything.begins, everything.ends) == true_boundaries(row)
    assert found.answers == {number: row.truth[number] for number in oracle.asked}


@given(rows())
def test_nothing_is_asked_twice_and_unknown_releases_are_never_blamed(row: Row) -> None:
    oracle = Oracle(row.truth)
    found = search(row.older, row.start, row.newer, oracle)
    assert len(oracle.asked) == len(set(oracle.asked))
    for boundary in (found.begins, found.ends):
        if boundary is not None:
            assert row.truth[boundary.affected] is YES
            assert boundary.free is None or row.truth[boundary.free] is NO
            assert all(row.truth[number] is UNKNOWN for number in boundary.unknown)


@given(rows(unknowns=False))
def test_a_search_keeps_to_its_limit_if_every_release_answers(row: Row) -> None:
    oracle = Oracle(row.truth)
    search(row.older, row.start, row.newer, oracle)
    limit = max_questions(row.older, row.newer)
    assert len(oracle.asked) <= limit
    assert limit <= 3 + 2 * math.log2(len(row.truth) + 1)


@given(rows(), st.data())
def test_wrong_runs_below_the_threshold_change_nothing(row: Row, data: st.DataObject) -> None:
    """Of three runs at most one is wrong: two of three is then always the truth."""
    opposite = {YES: NO, NO: YES}

    def runs(number: int) -> Iterator[Answer]:
        truth = row.truth[number]
        wrong = data.draw(st.sampled_from([None, 0, 1, 2]), label=f"which run of {number} is wrong")
        for nth in range(3):
            yield opposite.get(truth, truth) if nth == wrong else truth

    def ask(number: int) -> Answer:
        return confirm(runs(number).__next__, needed=2, of=3)

    found = search(row.older, row.start, row.newer, ask)
    assert (found.begins, found.ends) == true_boundaries(row)


@given(st.lists(st.sampled_from(list(Answer)), min_size=5, max_size=5))
def test_an_answer_is_confirmed_by_as_many_runs_as_needed_and_no_more(outcomes: list[Answer]) -> None:
    left = iter(outcomes)
    answer = confirm(left.__next__, needed=3, of=5)
    used = outcomes[: len(outcomes) - len(list(left))]
    expected = [outcome for outcome in (YES, NO) if outcomes.count(outcome) >= 3]
    assert answer is (expected[0] if expected else UNKNOWN)
    assert used.count(answer) == 3 if expected else max(used.count(YES), used.count(NO)) < 3


def run_of(text: str) -> tuple[Answer, ...]:
    return tuple({"+": YES, "-": NO, "?": UNKNOWN}[letter] for letter in text)


@pytest.mark.parametrize(
    ("truth", "begins", "ends"),
    [
        ("---+++---", Boundary(3, 2, ()), Boundary(5, 6, ())),
        ("++++", Boundary(0, None, ()), Boundary(3, None, ())),
        ("-??+?-", Boundary(3, 0, (1, 2)), Boundary(3, 5, (4,))),
        ("???+", Boundary(3, None, (0, 1, 2)), Boundary(3, None, ())),
        ("+??", Boundary(0, None, ()), Boundary(0, None, (1, 2))),
    ],
)
def test_the_bracket_is_the_smallest_proved_one(truth: str, begins: Boundary, ends: Boundary) -> None:
    answers, start = run_of(truth), truth.index("+")
    found = search(range(start), start, range(start + 1, len(truth)), answers.__getitem__)
    assert (found.begins, found.ends) == (begins, ends)


@pytest.mark.parametrize("answer", [NO, UNKNOWN])
@pytest.mark.parametrize("find", [search, scan])
def test_a_start_without_the_failure_leaves_nothing_to_find(find: Callable[..., Boundaries], answer: Answer) -> None:
    found = find([], 0, [], lambda _: answer)
    assert (found.begins, found.ends, dict(found.answers)) == (None, None, {0: answer})


def test_a_long_unknown_run_in_the_middle_is_left_quickly() -> None:
    """Neighbours of the middle would take 30 questions; far ones take a few."""
    truth = run_of("+" * 10 + "?" * 60 + "-" * 30)
    asked: list[int] = []

    def ask(number: int) -> Answer:
        asked.append(number)
        return truth[number]

    found = search([], 0, range(1, 100), ask)
    assert found.ends == Boundary(9, 70, tuple(range(10, 70)))
    assert NO in [truth[number] for number in islice(asked, 4)]
