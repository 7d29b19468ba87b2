"""The tolerance follows from the format, the modules, the terms and the steps, and has an upper end."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from repros.diagnose.compare.summaries import distance_between, join_parts, join_rows, scale_of
from repros.diagnose.compare.tolerance import MOST, Tolerance
from tests.diagnose.compare.recorded import summary

NUMBERS = st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=1, max_size=30)


def test_a_tolerance_says_what_it_follows_from(sentences: SnapshotAssertion) -> None:
    tolerance = Tolerance("float32", 4, 16, 3)
    assert tolerance.relative == 3 * 4 * (2**-23 * 2 + 2**-23 * 4)
    assert str(tolerance) == sentences


def test_a_tolerance_never_explains_everything() -> None:
    assert Tolerance("bfloat16", 100, 1000, 1000).relative == MOST


@given(NUMBERS, st.integers(0, 30))
def test_parts_join_to_the_whole_wherever_it_is_cut(values: list[float], place: int) -> None:
    whole = summary(values)
    joined = join_parts([summary(values[:place]), summary(values[place:])])
    assert distance_between(whole, joined, scale_of(whole, summary([1.0]))).relative < 1e-12


@given(NUMBERS, st.integers(1, 29))
def test_rows_join_to_the_whole(values: list[float], place: int) -> None:
    parts = [part for part in (values[:place], values[place:]) if part]
    joined = join_rows([summary(part, [len(part), 1]) for part in parts])
    assert joined is not None
    assert joined["shape"] == [len(values), 1]
    assert math.isclose(joined["sum"], math.fsum(values), rel_tol=1e-12, abs_tol=1e-12)
    assert (joined["min"], joined["max"]) == (min(values), max(values))


@given(st.lists(st.floats(1, 100), min_size=2, max_size=10, unique=True))
def test_elements_that_have_changed_places_differ(values: list[float]) -> None:
    one, other = summary(values), summary([*values[1:], values[0]])
    assert distance_between(one, other, scale_of(one)).relative > 0
    assert distance_between(one, other, scale_of(one), in_order=False).relative < 1e-12
