"""Whether what is said of a package lies in a range: pins, ranges, several ways, and nothing at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.audit.subject import Admits, Pick, Place, Subject, overlap

HERE = Place("requirements.txt", 3)


def pin(version: str, marker: str = "", *, required: bool = True) -> Pick:
    return Pick(version, HERE, Version(version), marker=marker, required=required)


def ranged(specifiers: str, marker: str = "") -> Pick:
    return Pick(specifiers, HERE, releases=SpecifierSet(specifiers), marker=marker)


UNSAID = Pick("from a link", HERE)


@pytest.mark.parametrize(
    ("said", "releases", "answer"),
    [
        ("==2.1.3", ">=2.1,<2.4", Admits.ALL),
        (">=2.1", ">=2.1,<2.4", Admits.SOME),
        (">=2.1,<2.3", ">=2.1,<2.4", Admits.ALL),
        (">=2.4", ">=2.1,<2.4", Admits.NONE),
        ("<2.1", ">=2.1,<2.4", Admits.NONE),
        ("", "<2.4", Admits.SOME),
        ("", "", Admits.ALL),
        (">=1", "", Admits.ALL),
        ("~=2.1.0", "<2.1.5", Admits.SOME),
        ("~=2.1", ">=2.1,<3", Admits.ALL),
        ("==2.4.*", "!=2.4.*,!=2.5.*", Admits.NONE),
        (">=2.4,<2.6", "!=2.4.*,!=2.5.*", Admits.NONE),
        (">=2.4,<2.6.1", "!=2.4.*,!=2.5.*", Admits.SOME),
        (">2.5.3", "<2.5.4", Admits.SOME),
        ("<=2.5.3", ">2.5.3", Admits.NONE),
        ("<1,>2", "<3", Admits.UNKNOWN),
    ],
)
def test_a_range_in_a_range(said: str, releases: str, answer: Admits) -> None:
    assert overlap(SpecifierSet(said), SpecifierSet(releases)) is answer


VERSIONS = [f"{major}.{minor}{patch}" for major in range(4) for minor in range(4) for patch in ("", ".1", ".2", ".7")]
DENSE = [Version(f"{major}.{minor}.{patch}") for major in range(6) for minor in range(6) for patch in range(12)]
SPECIFIERS = st.builds(
    "{}{}".format, st.sampled_from([">=", ">", "<=", "<", "==", "!=", "~="]), st.sampled_from(VERSIONS)
).map(lambda text: text if "~=" not in text or "." in text[2:] else "")
RANGES = st.lists(SPECIFIERS, max_size=3).map(",".join).map(SpecifierSet)


@given(RANGES, RANGES)
def test_agrees_with_asking_of_many_versions(said: SpecifierSet, releases: SpecifierSet) -> None:
    admitted = [version for version in DENSE if said.contains(version, prereleases=True)]
    within = {releases.contains(version, prereleases=True) for version in admitted}
    answer = overlap(said, releases)
    if within == {True, False}:
        assert answer is Admits.SOME
    elif within == {True}:
        assert answer in {Admits.ALL, Admits.SOME}, "what lies between the versions asked may lie without"
    elif within == {False}:
        assert answer in {Admits.NONE, Admits.SOME}


@pytest.mark.parametrize(
    ("picks", "complete", "answer"),
    [
        ((), True, Admits.NONE),
        ((), False, Admits.UNKNOWN),
        ((pin("2.1"),), False, Admits.ALL),
        ((pin("2.4"),), False, Admits.NONE),
        ((ranged(">=2"),), False, Admits.SOME),
        ((UNSAID,), False, Admits.UNKNOWN),
        ((pin("2.1", "sys_platform == 'linux'"),), False, Admits.SOME),
        ((pin("2.1", "sys_platform == 'linux'"),), True, Admits.ALL),
        ((pin("2.4", "sys_platform == 'linux'"),), False, Admits.NONE),
        ((pin("2.1", "x"), pin("2.4", "y")), True, Admits.SOME),
        ((pin("2.1"), UNSAID), False, Admits.SOME),
        ((pin("2.4"), UNSAID), False, Admits.UNKNOWN),
        ((pin("2.1", required=False),), False, Admits.SOME),
        ((pin("2.4", required=False),), False, Admits.NONE),
        ((pin("2.1", required=False), ranged("<2.3")), False, Admits.ALL),
    ],
)
def test_what_is_said_of_a_package(picks: tuple[Pick, ...], complete: bool, answer: Admits) -> None:
    subject = Subject("x", {"lightning": picks} if picks else {}, complete)
    assert subject.admits("Lightning", SpecifierSet("<2.4")) is answer


def test_whether_a_package_is_there() -> None:
    subject = Subject("x", {"torch": (UNSAID,)}, complete=True)
    assert subject.admits("torch", SpecifierSet()) is Admits.ALL
    assert subject.admits("lightning", SpecifierSet()) is Admits.NONE


def test_lightning_under_its_older_name() -> None:
    subject = Subject("x", {"pytorch-lightning": (pin("2.1.3"),)}, complete=True)
    assert subject.named("lightning") == "pytorch-lightning"
    assert subject.admits("lightning", SpecifierSet("<2.4")) is Admits.ALL


def test_a_build_is_of_its_release() -> None:
    subject = Subject("x", {"torch": (pin("2.13.0+cpu"),)}, complete=True)
    assert subject.admits("torch", SpecifierSet("<=2.13.0")) is Admits.ALL
