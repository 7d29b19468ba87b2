"""Conditions over several packages: how a header states them, and what they are for given releases."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement

from repros.model.affected import AnyOf, Overlap, Term, evaluate, packages_of
from tests.factories import conditions, environment

ALL, SOME, NONE, UNKNOWN = Overlap.ALL, Overlap.SOME, Overlap.NONE, Overlap.UNKNOWN
EITHER = "accelerate<1.13 or no bitsandbytes>=0.48"


@pytest.mark.parametrize("text", ["lightning>=2.1,<2.4", "no lightning>=2.5.5", EITHER, "no a<1 or no b<1 or c<1"])
def test_a_condition_reads_back_as_it_was_written(text: str) -> None:
    assert str(AnyOf.parse(text)) == text


def test_only_a_single_range_is_one() -> None:
    found = [AnyOf.parse(text).only for text in ("torch<2", "no torch<2", "torch<2 or lightning<2")]
    assert [str(package) for package in found] == ["torch<2", "None", "None"]
    assert packages_of(conditions("Py_Torch<2", EITHER)) == ("py-torch", "accelerate", "bitsandbytes")


@pytest.mark.parametrize("text", ["torch", "no torch", "torch<2 or", "torch<2 or lightning", "torch<2; x", "", "no"])
def test_a_term_without_a_range_is_refused(text: str) -> None:
    with pytest.raises((ValueError, InvalidRequirement)):
        AnyOf.parse(text)


@pytest.mark.parametrize(
    ("versions", "affected"),
    [
        ({"accelerate": "1.12.0", "bitsandbytes": "0.48.2"}, True),
        ({"accelerate": "1.12.0"}, True),
        ({"accelerate": "1.15.0", "bitsandbytes": "0.48.0"}, False),
        ({"accelerate": "1.15.0", "bitsandbytes": "0.47.0"}, True),
        ({"accelerate": "1.15.0"}, True),
    ],
)
def test_an_environment(versions: dict[str, str], affected: bool) -> None:
    here = environment(versions=versions)
    assert evaluate(conditions(EITHER), here.compare) is (ALL if affected else NONE)


@pytest.mark.parametrize("name", ["lightning", "pytorch-lightning", "lightning-fabric"])
def test_a_package_counts_under_every_name_of_its_distributions(name: str) -> None:
    unless = conditions("torch<2.11", "no lightning>=2.5.5")
    here = environment(versions={"torch": "2.9.1", name: "2.5.6"})
    assert evaluate(unless, here.compare) is NONE
    assert evaluate(unless, environment(versions={"torch": "2.9.1", name: "2.5.4"}).compare) is ALL


def test_no_condition_means_every_release() -> None:
    assert evaluate((), lambda _: NONE) is ALL


OVERLAPS = st.sampled_from(Overlap)
POSSIBLE = {ALL: {True}, NONE: {False}, SOME: {True, False}, UNKNOWN: {True, False}}
"""What a range may be for the release that is really installed."""
TERMS = st.builds(lambda number, negated: (number, negated), st.integers(0, 3), st.booleans())


@given(st.lists(st.lists(TERMS, min_size=1, max_size=3), max_size=3), st.lists(OVERLAPS, min_size=4, max_size=4))
def test_an_answer_never_excludes_what_may_be(tree: list[list[tuple[int, bool]]], found: list[Overlap]) -> None:
    """`all` and `none` are certain: no release that may be installed contradicts them."""

    def term(number: int, negated: bool) -> Term:
        (only,) = AnyOf.parse(f"{'no ' if negated else ''}package{number}<1").terms
        return only

    made = tuple(AnyOf(tuple(term(*parts) for parts in terms)) for terms in tree)
    answer = evaluate(made, lambda one: found[int(one.package[-1])])
    worlds = product(*(POSSIBLE[package] for package in found))
    truths = {all(any(world[n] is not negated for n, negated in terms) for terms in tree) for world in worlds}
    assert truths <= POSSIBLE[answer]
    if UNKNOWN not in found and SOME not in found:
        assert truths == POSSIBLE[answer]
