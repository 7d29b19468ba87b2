"""The overlap of a subject's constraints with a range: pins, ranges, several constraints of one package, none."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.affected import Overlap

HERE = Location("requirements.txt", 3)


def pin(version: str, marker: str = "", *, required: bool = True) -> Constraint:
    return Constraint(version, HERE, Version(version), marker=marker, required=required)


def ranged(specifiers: str, marker: str = "") -> Constraint:
    return Constraint(specifiers, HERE, releases=SpecifierSet(specifiers), marker=marker)


URL = Constraint("from a URL", HERE)


@pytest.mark.parametrize(
    ("constraints", "complete", "answer"),
    [
        ((), True, Overlap.NONE),
        ((), False, Overlap.UNKNOWN),
        ((pin("2.1"),), False, Overlap.ALL),
        ((pin("2.4"),), False, Overlap.NONE),
        ((ranged(">=2"),), False, Overlap.SOME),
        ((URL,), False, Overlap.UNKNOWN),
        ((pin("2.1", "sys_platform == 'linux'"),), False, Overlap.ALL),
        ((pin("2.1", "extra == 'x'"),), False, Overlap.SOME),
        ((pin("2.1", "sys_platform == 'linux'", required=False),), False, Overlap.SOME),
        ((pin("2.1", "sys_platform == 'linux'"),), True, Overlap.ALL),
        ((pin("2.4", "sys_platform == 'linux'"),), False, Overlap.NONE),
        ((pin("2.1", "x"), pin("2.4", "y")), True, Overlap.SOME),
        ((pin("2.1"), URL), False, Overlap.SOME),
        ((pin("2.4"), URL), False, Overlap.UNKNOWN),
        ((pin("2.1", required=False),), False, Overlap.SOME),
        ((pin("2.4", required=False),), False, Overlap.NONE),
        ((pin("2.1", required=False), ranged("<2.3")), False, Overlap.ALL),
    ],
)
def test_constraints_of_a_package(constraints: tuple[Constraint, ...], complete: bool, answer: Overlap) -> None:
    subject = Subject("x", {"lightning": constraints} if constraints else {}, complete)
    assert subject.overlap_with("Lightning", SpecifierSet("<2.4")) is answer


@pytest.mark.parametrize(
    ("version", "affected", "answer"),
    [
        ("2.11.0.dev20260101", "<2.11", Overlap.SOME),
        ("2.11.0a0+git1234", "<2.11", Overlap.SOME),
        ("2.11.0rc2", ">=2.11", Overlap.SOME),
        ("2.11.0rc2", ">=2.1,<2.11.0", Overlap.SOME),
        ("2.10.0.dev20251001", "<2.11", Overlap.ALL),
        ("2.12.0a0+nv25", "<2.11", Overlap.NONE),
        ("2.10.0+cu128", "<2.10", Overlap.NONE),
    ],
)
def test_a_pre_release_of_the_fixed_release_may_be_affected(version: str, affected: str, answer: Overlap) -> None:
    subject = Subject("x", {"torch": (pin(version),)}, complete=True)
    assert subject.overlap_with("torch", SpecifierSet(affected)) is answer


def test_an_empty_range_asks_for_the_presence_of_a_package() -> None:
    subject = Subject("x", {"torch": (URL,)}, complete=True)
    assert subject.overlap_with("torch", SpecifierSet()) is Overlap.ALL
    assert subject.overlap_with("lightning", SpecifierSet()) is Overlap.NONE


def test_torch_is_found_under_its_conda_name() -> None:
    subject = Subject("x", {"pytorch": (pin("2.1.3"),)}, complete=True)
    assert subject.find_name("torch") == "pytorch"


def test_lightning_is_found_under_its_older_name() -> None:
    subject = Subject("x", {"pytorch-lightning": (pin("2.1.3"),)}, complete=True)
    assert subject.find_name("lightning") == "pytorch-lightning"
    assert subject.overlap_with("lightning", SpecifierSet("<2.4")) is Overlap.ALL


def test_one_of_two_distributions_with_different_releases_may_be_imported() -> None:
    subject = Subject("x", {"lightning": (pin("2.4"),), "pytorch-lightning": (pin("2.2"),)}, complete=True)
    assert subject.find_names("lightning") == ("lightning", "pytorch-lightning")
    assert subject.overlap_with("lightning", SpecifierSet("<2.4")) is Overlap.SOME
    assert subject.overlap_with("lightning", SpecifierSet("<2.5")) is Overlap.ALL
    assert subject.overlap_with("lightning", SpecifierSet("<2.1")) is Overlap.NONE


@pytest.mark.parametrize(("version", "one"), [("2.4.0", True), ("2.4.0.post0", True), ("2.4.0rc1", False)])
def test_two_distributions_with_one_release_count_as_one(version: str, one: bool) -> None:
    subject = Subject("x", {"pytorch-lightning": (pin(version),), "lightning": (pin("2.4"),)}, complete=True)
    assert subject.find_names("lightning") == (("lightning",) if one else ("lightning", "pytorch-lightning"))


def test_a_build_counts_as_its_release() -> None:
    subject = Subject("x", {"torch": (pin("2.13.0+cpu"),)}, complete=True)
    assert subject.overlap_with("torch", SpecifierSet("<=2.13.0")) is Overlap.ALL
