"""The overlap of two version ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.advise.audit.sources.parsing import exact_constraint
from repros.advise.audit.subject import Location, compare_ranges
from repros.model.affected import Overlap


@pytest.mark.parametrize(
    ("allowed", "affected", "answer"),
    [
        ("==2.1.3", ">=2.1,<2.4", Overlap.ALL),
        (">=2.1", ">=2.1,<2.4", Overlap.SOME),
        (">=2.1,<2.3", ">=2.1,<2.4", Overlap.ALL),
        (">=2.4", ">=2.1,<2.4", Overlap.NONE),
        ("<2.1", ">=2.1,<2.4", Overlap.NONE),
        ("", "<2.4", Overlap.SOME),
        ("", "", Overlap.ALL),
        (">=1", "", Overlap.ALL),
        ("~=2.1.0", "<2.1.5", Overlap.SOME),
        ("~=2.1", ">=2.1,<3", Overlap.ALL),
        ("==2.4.*", "!=2.4.*,!=2.5.*", Overlap.NONE),
        (">=2.4,<2.6", "!=2.4.*,!=2.5.*", Overlap.NONE),
        (">=2.4,<2.6.1", "!=2.4.*,!=2.5.*", Overlap.SOME),
        (">2.5.3", "<2.5.4", Overlap.SOME),
        ("<=2.5.3", ">2.5.3", Overlap.NONE),
        ("<1,>2", "<3", Overlap.UNKNOWN),
    ],
)
def test_ranges_are_compared(allowed: str, affected: str, answer: Overlap) -> None:
    assert compare_ranges(SpecifierSet(allowed), SpecifierSet(affected)) is answer


VERSIONS = [f"{major}.{minor}{patch}" for major in range(4) for minor in range(4) for patch in ("", ".1", ".2", ".7")]
DENSE = [Version(f"{major}.{minor}.{patch}") for major in range(6) for minor in range(6) for patch in range(12)]
SPECIFIERS = st.builds(
    "{}{}".format, st.sampled_from([">=", ">", "<=", "<", "==", "!=", "~="]), st.sampled_from(VERSIONS)
).map(lambda text: text if "~=" not in text or "." in text[2:] else "")
RANGES = st.lists(SPECIFIERS, max_size=3).map(",".join).map(SpecifierSet)


@given(RANGES, RANGES)
def test_the_answer_agrees_with_many_versions(allowed: SpecifierSet, affected: SpecifierSet) -> None:
    versions = [version for version in DENSE if allowed.contains(version, prereleases=True)]
    inside = {affected.contains(version, prereleases=True) for version in versions}
    answer = compare_ranges(allowed, affected)
    if inside == {True, False}:
        assert answer is Overlap.SOME
    elif inside == {True}:
        assert answer in {Overlap.ALL, Overlap.SOME}, "a version between the dense ones may lie outside"
    elif inside == {False}:
        assert answer in {Overlap.NONE, Overlap.SOME}


def test_a_specifier_without_a_version_and_one_of_a_pre_release() -> None:
    assert compare_ranges(SpecifierSet("===odd"), SpecifierSet(">=1")) is Overlap.UNKNOWN
    assert compare_ranges(SpecifierSet(">=2.4.0rc1"), SpecifierSet("<2.4.0rc2")) is Overlap.SOME
    assert compare_ranges(SpecifierSet(">2.0.9.post0"), SpecifierSet("<=2.0.9.post0")) is Overlap.NONE


@pytest.mark.parametrize("version", ["2.11.0.dev20260101", "2.11.0a0+git1234", "2.11.0rc1"])
def test_a_pre_release_of_the_release_with_the_fix_may_be_affected(version: str) -> None:
    constraint = exact_constraint(version, Location(""))
    assert constraint.overlap_with(SpecifierSet("<2.11")) is Overlap.SOME
    assert constraint.overlap_with(SpecifierSet("<2.10")) is Overlap.NONE
    assert constraint.overlap_with(SpecifierSet("<2.12")) is Overlap.ALL
