"""The search, compared with asking every release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.scripts.bisect.search import Answer, Boundaries, Boundary, confirm, max_questions, scan, search
from tests.scripts.bisect.askers import Wide

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


@given(rows())
def test_a_search_and_a_scan_find_the_true_boundaries(row: Row) -> None:
    asker = Wide(row.truth.__getitem__)
    found = search(row.older, row.start, row.newer, asker)
    assert (found.begins, found.ends) == true_boundaries(row)
    everything = scan(row.older, row.start, row.newer, Wide(row.truth.__getitem__))
    assert (everything.begins, everything.ends) == true_boundaries(row)
    assert found.answers == {number: row.truth[number] for number in asker.begun}


@given(rows(), st.integers(2, 9), st.data())
def test_a_search_at_several_places_finds_what_one_question_after_another_finds(
    row: Row, width: int, data: st.DataObject
) -> None:
    """Whatever the order in which the answers come."""
    asker = Wide(row.truth.__getitem__, width, lambda waiting: data.draw(st.integers(0, waiting - 1)))
    found = search(row.older, row.start, row.newer, asker)
    one_by_one = search(row.older, row.start, row.newer, Wide(row.truth.__getitem__))
    assert (found.begins, found.ends) == (one_by_one.begins, one_by_one.ends)
    assert asker.begun[0] == row.start
    assert len(asker.begun) == len(set(asker.begun))
    assert asker.most <= width
    assert found.answers.items() <= dict(enumerate(row.truth)).items()


@given(rows(), st.integers(1, 9), st.data())
def test_a_start_without_the_failure_ends_a_search_at_several_places(row: Row, width: int, data: st.DataObject) -> None:
    truth = [*row.truth]
    truth[row.start] = data.draw(st.sampled_from([NO, UNKNOWN]))
    asker = Wide(truth.__getitem__, width, lambda waiting: data.draw(st.integers(0, waiting - 1)))
    found = search(row.older, row.start, row.newer, asker)
    assert (found.begins, found.ends, found.answers[row.start]) == (None, None, truth[row.start])


@given(rows())
def test_nothing_is_asked_twice_and_unknown_releases_are_never_blamed(row: Row) -> None:
    asker = Wide(row.truth.__getitem__)
    found = search(row.older, row.start, row.newer, asker)
    assert len(asker.begun) == len(set(asker.begun))
    for boundary in (found.begins, found.ends):
        if boundary is not None:
            assert row.truth[boundary.affected] is YES
            assert boundary.free is None or row.truth[boundary.free] is NO
            assert all(row.truth[number] is UNKNOWN for number in boundary.unknown)


@given(rows(unknowns=False))
def test_a_search_keeps_to_its_limit_if_every_release_answers(row: Row) -> None:
    asker = Wide(row.truth.__getitem__)
    search(row.older, row.start, row.newer, asker)
    limit = max_questions(row.older, row.newer)
    assert len(asker.begun) <= limit
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
        return confirm(runs(number).__next__, needed=2, of=3, nothing=UNKNOWN)

    found = search(row.older, row.start, row.newer, Wide(ask))
    assert (found.begins, found.ends) == true_boundaries(row)


@given(st.lists(st.sampled_from(list(Answer)), min_size=5, max_size=5))
def test_an_answer_is_confirmed_by_as_many_runs_as_needed_and_no_more(outcomes: list[Answer]) -> None:
    left = iter(outcomes)
    answer = confirm(left.__next__, needed=3, of=5, nothing=UNKNOWN)
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
    found = search(range(start), start, range(start + 1, len(truth)), Wide(answers.__getitem__))
    assert (found.begins, found.ends) == (begins, ends)


@pytest.mark.parametrize("answer", [NO, UNKNOWN])
@pytest.mark.parametrize("find", [search, scan])
def test_a_start_without_the_failure_leaves_nothing_to_find(find: Callable[..., Boundaries], answer: Answer) -> None:
    found = find([], 0, [], Wide(lambda _: answer))
    assert (found.begins, found.ends, dict(found.answers)) == (None, None, {0: answer})


def test_a_long_unknown_run_in_the_middle_is_left_quickly() -> None:
    """Neighbours of the middle would take 30 questions; far ones take a few."""
    truth = run_of("+" * 10 + "?" * 60 + "-" * 30)
    asker = Wide(truth.__getitem__)
    found = search([], 0, range(1, 100), asker)
    assert found.ends == Boundary(9, 70, tuple(range(10, 70)))
    assert NO in [truth[number] for number in asker.begun[:4]]


@pytest.mark.parametrize(("width", "rounds"), [(1, 13), (2, 7), (4, 5), (8, 3)])
def test_more_places_at_once_need_fewer_rounds(width: int, rounds: int) -> None:
    """Of 100 releases, if each takes equally long."""
    truth = run_of("-" * 30 + "+" * 40 + "-" * 30)
    asker = Wide(truth.__getitem__, width)
    found = search(range(50), 50, range(51, 100), asker)
    assert (found.begins, found.ends) == (Boundary(30, 29, ()), Boundary(69, 70, ()))
    assert -(-len(asker.begun) // width) == rounds
