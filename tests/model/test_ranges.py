"""Ranges as intervals, compared with what `packaging` says of single versions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.model.affected import AnyOf, affected_text, every_release_of
from repros.model.ranges import (
    Interval,
    affected_intervals,
    alternatives_of,
    intervals,
    sample,
    unaffected_releases,
)
from tests.factories import conditions

LIGHTNING = "lightning<2.0.8 or lightning>=2.1,<2.5.3"
SERIES = "lightning!=2.4.*,!=2.5.*"
EITHER = "accelerate<1.13 or no bitsandbytes>=0.48"


@pytest.mark.parametrize(
    ("texts", "free"),
    [
        ([LIGHTNING], ["lightning>=2.0.8,<2.1", "lightning>=2.5.3"]),
        ([SERIES, "torch>=2.6"], ["lightning>=2.4,<2.6", "torch<2.6"]),
        (["lightning>=2.1,<2.4"], ["lightning<2.1", "lightning>=2.4"]),
        (["lightning>=2.1", "lightning<2.4"], ["lightning<2.1", "lightning>=2.4"]),
        ([EITHER], ["accelerate>=1.13 with bitsandbytes>=0.48"]),
        (
            ["a!=2 or b<1"],
            ["a==2 with b>=1"],
        ),
        (["torch<2.11", "no lightning>=2.5.5"], ["torch>=2.11", "lightning>=2.5.5"]),
        (["no a>=1,<2", "a<3"], ["a>=1,<2", "a>=3"]),
        (["a>2.1,<=2.3"], ["a<=2.1", "a>2.3"]),
        (["a==2.1"], ["a<2.1", "a>2.1"]),
        (["a!=2.1"], ["a==2.1"]),
        (["a~=2.1.3"], ["a<2.1.3", "a>=2.2"]),
        (["a==2.1.*"], ["a<2.1", "a>=2.2"]),
        (["a<2.1rc1"], ["a>=2.1rc1"]),
        (["a>2.1rc1"], ["a<2.1rc2.dev0"]),
        (["a>=1!2"], ["a<1!2"]),
        (["a>=2 or a<2"], []),
        (["a>2 or a<=2"], []),
        (["a<1,>2"], ["every release of a"]),
        ([], []),
    ],
)
def test_what_is_free_of_a_failure(texts: list[str], free: list[str]) -> None:
    found = unaffected_releases(conditions(*texts))
    assert [" with ".join(map(str, together)) for together in found] == free


def test_intervals_are_half_open_and_name_no_end_that_is_not_there() -> None:
    assert affected_intervals(conditions(LIGHTNING, "torch<2"), "lightning") == (
        Interval(Version("0.dev0"), Version("2.0.8.dev0")),
        Interval(Version("2.1"), Version("2.5.3.dev0")),
    )
    assert affected_intervals(conditions(EITHER), "accelerate") == (Interval(Version("0.dev0"), None),)
    assert affected_intervals(conditions("a<1", "a>2"), "a") == ()


def test_alternatives_of_one_package() -> None:
    assert str(alternatives_of(AnyOf.parse("a<1 or no b>=2 or a>3"), "a")) == "a<1 or a>3"


@pytest.mark.parametrize(
    ("texts", "packages", "text"),
    [
        ([], ("torch", "lightning"), "every release of torch, lightning"),
        ([], (), "every release"),
        ([LIGHTNING], ("lightning",), LIGHTNING),
        ([SERIES, "torch>=2.6"], (), "lightning!=2.4.*,!=2.5.* and torch>=2.6"),
        ([EITHER, "torch>=2.6"], (), f"({EITHER}) and torch>=2.6"),
    ],
)
def test_the_affected_releases_in_words(texts: list[str], packages: tuple[str, ...], text: str) -> None:
    assert affected_text(conditions(*texts), packages) == text
    assert every_release_of(["a"]) == "every release of a"
    assert affected_text(conditions(EITHER, "torch>=2"), quote="`") == f"(`{EITHER}`) and `torch>=2`"


FINALS = [f"{major}.{minor}{patch}" for major in range(3) for minor in (0, 1, 9) for patch in ("", ".0", ".1", ".4")]
OTHERS = [
    "0.dev0",
    "0",
    "2.0a1",
    "2.1rc1",
    "2.1rc2",
    "2.1.dev0",
    "2.1.dev3",
    "2.1.post1",
    "2.1.post2",
    "1!0.5",
    "2.1.0.2",
]
NEAR = [
    "2.1rc1.post1",
    "2.1rc1.dev1",
    "2.1.post1.dev0",
    "2.1.post0",
    "2.1+cpu",
    "2.1.post1+cpu",
    "2.1.0.0.1",
    "2.1.0.1.dev0",
]
VERSIONS = [
    *map(Version, [*FINALS, *OTHERS, *NEAR, "2.1.5", "2.2.dev0", "2.2rc1", "2.2", "2.10", "3.0rc1", "3", "9.9"])
]
PLAIN = st.builds(
    "{}{}".format, st.sampled_from([">=", ">", "<=", "<", "==", "!="]), st.sampled_from([*FINALS, *OTHERS])
)
SERIES_OF = st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), st.sampled_from(FINALS))
COMPATIBLE = st.builds("~={}".format, st.sampled_from([*FINALS, "2.1rc1", "2.1.post1"]))
RANGES = st.lists(PLAIN | SERIES_OF | COMPATIBLE, min_size=1, max_size=3).map(",".join)
TERMS = st.builds("{}lightning{}".format, st.sampled_from(["", "", "", "no "]), RANGES)
CONDITIONS = st.lists(st.lists(TERMS, min_size=1, max_size=3).map(" or ".join), min_size=1, max_size=2)


def meets(texts: list[str], version: Version) -> bool:
    """Return whether a version meets conditions about lightning, read anew by hand."""

    def holds(term: str) -> bool:
        bounds = term.removeprefix("no ").removeprefix("lightning")
        return SpecifierSet(bounds).contains(version, prereleases=True) is not term.startswith("no ")

    return all(any(map(holds, text.split(" or "))) for text in texts)


@given(CONDITIONS)
def test_the_intervals_have_the_versions_that_packaging_finds_in_the_ranges(texts: list[str]) -> None:
    found = affected_intervals(conditions(*texts), "lightning")
    assert list(found) == sorted(found, key=lambda interval: interval.start)
    assert all(before.end is not None and before.end < after.start for before, after in pairwise(found))
    for version in VERSIONS:
        assert any(version in interval for interval in found) is meets(texts, version), version


@given(CONDITIONS)
def test_the_releases_that_are_free_are_those_that_are_not_affected(texts: list[str]) -> None:
    named = [SpecifierSet(releases.interval.bounds) for (releases,) in unaffected_releases(conditions(*texts))]
    for version in VERSIONS:
        free = any(bounds.contains(version, prereleases=True) for bounds in named)
        assert not (free and meets(texts, version)), version
        if not (version.is_prerelease or version.is_postrelease or version.local):
            assert free is not meets(texts, version), version


RELEASES = st.lists(st.integers(0, 12) | st.integers(0, 99_999), min_size=1, max_size=5)


@given(RANGES, RANGES, RELEASES | st.just([2, 1, 0, 1]))
def test_every_release_is_treated_like_one_of_the_sample(one: str, other: str, release: list[int]) -> None:
    ranges = (SpecifierSet(one), SpecifierSet(other))

    def treatment(version: Version) -> tuple[bool, ...]:
        return tuple(bounds.contains(version, prereleases=True) for bounds in ranges)

    assert treatment(Version(".".join(map(str, release)))) in map(treatment, sample(*ranges))


def test_a_range_that_names_no_version_changes_nowhere() -> None:
    odd = SpecifierSet("===odd")
    assert sample(odd) == [Version("0")]
    assert intervals(lambda version: odd.contains(version, prereleases=True), [odd]) == ()
    assert intervals(lambda _: True, []) == (Interval(Version("0.dev0"), None),)
