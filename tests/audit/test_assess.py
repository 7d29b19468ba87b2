"""Findings: conjunctions whole, what would free of it, what helps here."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.audit.assess import Finding, Status, assess
from repros.audit.subject import Pick, Place, Subject
from repros.engine.catalogue import load
from repros.evidence import Evidence, Measurement, Unit, VariantVerdict
from repros.model import Device, Outcome, Repro, Verdict
from tests import factories


def subject(complete: bool = False, **versions: str) -> Subject:
    """A requirements file: `==` pins, another operator is a range, the empty text is a link."""

    def pick(number: int, said: str) -> Pick:
        place = Place("requirements.txt", number)
        if not said:
            return Pick("from a link", place)
        if said[0].isdigit():
            return Pick(said, place, Version(said))
        return Pick(said, place, releases=SpecifierSet(said))

    picks = {name: (pick(number, said),) for number, (name, said) in enumerate(versions.items(), 1)}
    return Subject("requirements.txt", picks, complete)


BOTH = factories.repro(
    packages=("lightning",),
    affected=factories.requirements("lightning>=2.1,<2.4", "torch>=2.6"),
    variants=(
        factories.variant(),
        factories.variant("fixed", Outcome.PASSES, about="a fresh Trainer"),
        factories.variant("newer", Outcome.PASSES, requires=factories.requirements("lightning>=2.3")),
    ),
)


def found(repro: Repro, of: Subject, evidence: Evidence | None = None) -> Finding:
    (finding,) = assess([repro], of, evidence or {})
    return finding


@pytest.mark.parametrize(
    ("of", "status", "why"),
    [
        (
            subject(lightning="2.2", torch="2.7"),
            Status.AFFECTED,
            "lightning 2.2 (requirements.txt:1) is in lightning>=2.1,<2.4; torch 2.7 (requirements.txt:2) is in torch",
        ),
        (subject(lightning="2.2", torch="2.5"), Status.CLEAR, "torch 2.5 (requirements.txt:2) is not in torch>=2.6"),
        (subject(lightning="2.2"), Status.UNKNOWN, "torch is not named"),
        (
            subject(lightning="2.2", torch=""),
            Status.UNKNOWN,
            "torch from a link (requirements.txt:2) cannot be held against torch>=2.6",
        ),
        (subject(lightning="2.5"), Status.CLEAR, "lightning 2.5 (requirements.txt:1) is not in lightning>=2.1,<2.4"),
        (
            subject(lightning=">=2.2", torch="2.7"),
            Status.POSSIBLE,
            "lightning >=2.2 (requirements.txt:1) may be in lightning>=2.1,<2.4; torch 2.7 (requirements.txt:2) is in",
        ),
        (subject(lightning=">=2.2", torch=""), Status.UNKNOWN, "torch from a link (requirements.txt:2) cannot be held"),
        (subject(complete=True, torch="2.7"), Status.CLEAR, "lightning is not named"),
    ],
)
def test_a_conjunction_is_evaluated_whole(of: Subject, status: Status, why: str) -> None:
    finding = found(BOTH, of)
    assert finding.status is status
    assert "; ".join(map(str, finding.conditions)).startswith(why)


def test_what_frees_of_it() -> None:
    finding = found(BOTH, subject())
    assert (finding.fixed, finding.free) == (("lightning>=2.4",), ("lightning<2.1", "torch<2.6"))
    holes = factories.repro(affected=factories.requirements("lightning!=2.4.*,!=2.5.*"))
    assert found(holes, subject()).free == ("lightning==2.4.*", "lightning==2.5.*")


def test_what_it_says_frees_of_it_does() -> None:
    for repro in load():
        for said in (*found(repro, subject()).fixed, *found(repro, subject()).free):
            (requirement,) = factories.requirements(said)
            of = Subject(
                "x", {requirement.name: (Pick(said, Place("x"), releases=requirement.specifier),)}, complete=False
            )
            assert found(repro, of).status is Status.CLEAR, (repro.id, said)


def test_a_failure_of_every_release_concerns_whoever_has_the_package() -> None:
    repro = factories.repro(packages=("lightning", "torch"), requires=factories.requirements("lightning>=2.0"))
    assert found(repro, subject(lightning="2.6", torch="2.13")).status is Status.AFFECTED
    assert found(repro, subject(lightning="1.9", torch="2.13")).status is Status.CLEAR
    assert found(repro, subject(complete=True, lightning="2.6")).status is Status.CLEAR
    assert found(repro, subject(lightning="2.6")).status is Status.UNKNOWN
    assert found(repro, subject(lightning="2.6", torch="")).status is Status.AFFECTED


def test_only_workarounds_that_can_be_had_are_offered() -> None:
    offered = [variant.name for variant in found(BOTH, subject(lightning="2.2", torch="2.7")).workarounds]
    assert offered == ["fixed"]
    offered = [variant.name for variant in found(BOTH, subject(lightning=">=2.2", torch="2.7")).workarounds]
    assert offered == ["fixed", "newer"]


SAID = st.sampled_from(["", "2.0", "2.2", "2.5", "2.6", "2.7", ">=2.2", "<2.4", ">=2.6"])


@given(st.dictionaries(st.sampled_from(["lightning", "torch"]), SAID), st.booleans())
def test_cannot_tell_is_never_taken_for_good(versions: dict[str, str], complete: bool) -> None:
    """Clear means that a release is named that lies outside, or that a lock lacks the package."""
    of = subject(complete=complete, **versions)
    if found(BOTH, of).status is not Status.CLEAR:
        return
    ranges = {r.name: r.specifier for r in BOTH.affected}
    outside = [
        all(not ranges[name].contains(version) for version in ("2.2", "2.6", "2.7", "2.13") if _admitted(said, version))
        for name, said in versions.items()
        if said
    ]
    assert any(outside) or (complete and len(versions) < 2)


def _admitted(said: str, version: str) -> bool:
    return said == version if said[0].isdigit() else SpecifierSet(said).contains(version)


def measurement(stack: str, verdict: Verdict = Verdict.REPRODUCED, device: str = "cpu", **versions: str) -> Measurement:
    unit = Unit(stack, BOTH.id, Device(device), "ddp")
    seen = {"failing": VariantVerdict(verdict, "X"), "fixed": VariantVerdict(Verdict.CLEAN)}
    return Measurement(unit, "", dt.date(2026, 1, 1), "warm", "Linux", "3.11.7", versions, 2, 1.0, seen)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ([], "documented only; nothing was measured"),
        ([measurement("a", Verdict.GONE, lightning="2.2", torch="2.7")], "documented only; nothing was measured"),
        (
            [measurement("a", lightning="2.2", torch="2.7+cpu")],
            "measured on these versions, on cpu (stack a); on cuda documented only",
        ),
        (
            [
                measurement("a", lightning="2.3", torch="2.7"),
                measurement("b", device="cuda", lightning="2.3", torch="2.8"),
            ],
            "measured on cpu, cuda with other versions (stack a, b); documented for these",
        ),
    ],
)
def test_what_is_measured_and_what_only_documented(evidence: list[Measurement], said: str) -> None:
    repro = replace(BOTH, devices=(Device.CPU, Device.CUDA))
    finding = found(repro, subject(lightning="2.2", torch="2.7"), {one.unit: one for one in evidence})
    assert str(finding.measured) == said
