"""What a script needs, apart from what its failure needs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version

from repros.model.affected import Overlap
from repros.model.packages import intersection
from repros.model.unmeasured import UnmetRequirement, existence, find_unmet, own_packages, settle
from tests import factories as make

ALL, SOME, NONE, UNKNOWN = Overlap.ALL, Overlap.SOME, Overlap.NONE, Overlap.UNKNOWN


def gap(overlap: Overlap, own: bool = True) -> UnmetRequirement:
    return UnmetRequirement(Requirement("torch>=2.4"), overlap, own)


@pytest.mark.parametrize(
    ("found", "exists", "gaps", "settled"),
    [
        (ALL, ALL, [], ALL),
        (NONE, ALL, [], NONE),
        # a release that was not measured is neither free nor affected
        (NONE, ALL, [gap(NONE)], UNKNOWN),
        (NONE, ALL, [gap(SOME)], UNKNOWN),
        (NONE, ALL, [gap(NONE, own=False)], UNKNOWN),
        (ALL, ALL, [gap(NONE)], UNKNOWN),
        (SOME, ALL, [gap(NONE)], UNKNOWN),
        (ALL, ALL, [gap(SOME)], SOME),
        # a package that the failure is not in does not free of it
        (ALL, ALL, [gap(NONE, own=False)], ALL),
        (SOME, ALL, [gap(NONE, own=False)], SOME),
        # upstream knows that what fails is not there
        (NONE, NONE, [gap(NONE)], NONE),
        (ALL, NONE, [gap(NONE)], NONE),
        (NONE, UNKNOWN, [gap(NONE)], UNKNOWN),
        (UNKNOWN, ALL, [gap(SOME)], UNKNOWN),
    ],
)
def test_what_is_known_of_releases(
    found: Overlap, exists: Overlap, gaps: list[UnmetRequirement], settled: Overlap
) -> None:
    assert settle(found, exists, gaps) is settled


OVERLAPS = st.sampled_from(Overlap)
GAPS = st.builds(gap, st.sampled_from([SOME, NONE]), st.booleans())


@given(OVERLAPS, OVERLAPS, st.lists(GAPS))
def test_a_gap_never_frees_of_a_failure(found: Overlap, exists: Overlap, gaps: list[UnmetRequirement]) -> None:
    """Nothing but `exists` says that a release is free of a failure where the script cannot run."""
    if settle(found, exists, gaps) is NONE:
        assert exists is NONE or (found is NONE and not gaps)


def test_gaps_are_one_for_each_package_those_of_the_failure_first() -> None:
    repro = make.repro(
        packages=("lightning",),
        dependencies=make.requirements("torch>=2.0", "lightning>=2.0", "numpy"),
        requires=make.requirements("torch>=2.1"),
        variants=(make.variant(requires=make.requirements("lightning<2.3")),),
    )
    known = {"torch": Version("2.0.1"), "lightning": Version("2.4"), "numpy": Version("1.0")}

    def met(requirement: Requirement) -> Overlap:
        return ALL if requirement.specifier.contains(known[requirement.name]) else NONE

    gaps = find_unmet(repro, repro.failing, met)
    assert [(str(gap.requirement), gap.own) for gap in gaps] == [("lightning<2.3", True), ("torch>=2.1", False)]
    assert repro.measurable == ("lightning>=2.0,<2.3",)


def test_the_widest_gap_of_a_package_counts() -> None:
    repro = make.repro(
        dependencies=make.requirements("torch>=2.0"),
        variants=(make.variant(requires=make.requirements("torch>=2.4")),),
    )
    answers = {"torch>=2.4": SOME, "torch>=2.0": NONE}
    (only,) = find_unmet(repro, repro.failing, lambda requirement: answers[str(requirement)])
    assert (str(only.requirement), only.overlap) == ("torch>=2.0", NONE)


def test_the_packages_of_the_ranges_are_the_failures_own() -> None:
    ranges = make.conditions("torch>=2.6")
    repro = make.repro(packages=("Lightning",), affected=ranges, variants=(make.variant(affected=ranges),))
    assert own_packages(repro, repro.failing) == {"lightning", "torch"}


def test_a_variant_with_ranges_of_its_own_may_fail_where_what_fails_does_not_exist() -> None:
    exists = make.conditions("torch<2.3")
    ranges = make.conditions("torch<2.2")
    own = make.variant("refused", affected=())
    repro = make.repro(affected=ranges, exists=exists, variants=(make.variant(affected=ranges), own))
    assert (existence(repro, repro.failing), existence(repro, own)) == (exists, ())


@pytest.mark.parametrize(
    ("ranges", "joined"),
    [
        ([], ""),
        (["torch>=2.0", "torch>=2.1"], ">=2.1"),
        (["torch>=2.10", "torch>=2.9,<3"], ">=2.10,<3"),
        (["torch<2.3", "torch>=2.0"], ">=2.0,<2.3"),
    ],
)
def test_ranges_are_joined_without_needless_lower_bounds(ranges: list[str], joined: str) -> None:
    found = intersection(Requirement(text).specifier for text in ranges)
    assert found == Requirement(f"torch{joined}").specifier
