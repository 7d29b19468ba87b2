"""Assessments: conjunctions, unaffected ranges, workarounds that the subject can use."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.advise.audit.assess import assess
from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.evidence_summary import EvidenceSummary
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.engine.evidence import Evidence, Measurement, Unit, VariantVerdict
from repros.model import Device, ExpectedOutcome, Repro, Role, Verdict
from tests import factories
from tests.package_catalogue import load


def subject(complete: bool = False, **versions: str) -> Subject:
    """Return the subject for a requirements file: a version is a pin, an operator a range, the empty text a URL."""

    def constraint(line: int, raw: str) -> Constraint:
        location = Location("requirements.txt", line)
        if not raw:
            return Constraint("from a URL", location)
        if raw[0].isdigit():
            return Constraint(raw, location, Version(raw))
        return Constraint(raw, location, releases=SpecifierSet(raw))

    constraints = {name: (constraint(line, raw),) for line, (name, raw) in enumerate(versions.items(), 1)}
    return Subject("requirements.txt", constraints, complete)


BOTH = factories.repro(
    packages=("lightning",),
    affected=factories.conditions("lightning>=2.1,<2.4", "torch>=2.6"),
    variants=(
        factories.variant(),
        factories.variant("fixed", ExpectedOutcome.PASSES, about="a fresh Trainer"),
        factories.variant("newer", ExpectedOutcome.PASSES, requires=factories.requirements("lightning>=2.3")),
    ),
)


def conditions(assessment: Assessment) -> list[tuple[str | None, str, str, list[str]]]:
    """Return of each condition the package, the range, their overlap, and where the package is constrained."""
    return [
        (one.package, str(one.requirement), one.overlap.value, [str(constraint) for constraint in one.constraints])
        for one in assessment.conditions
    ]


def found(repro: Repro, of: Subject, evidence: Evidence | None = None) -> Assessment:
    (assessment,) = assess([repro], of, evidence or {})
    return assessment


def test_each_of_two_distributions_with_different_releases_has_its_reason() -> None:
    of = subject(False, **{"lightning": "2.4", "pytorch-lightning": "2.2.4", "torch": "2.7"})
    assessment = found(BOTH, of)
    assert assessment.status is AuditStatus.POSSIBLE
    assert conditions(assessment) == [
        ("lightning", "lightning<2.4,>=2.1", "none", ["2.4 (requirements.txt:1)"]),
        ("pytorch-lightning", "lightning<2.4,>=2.1", "all", ["2.2.4 (requirements.txt:2)"]),
        ("torch", "torch>=2.6", "all", ["2.7 (requirements.txt:3)"]),
    ]


@pytest.mark.parametrize(
    ("of", "status", "why"),
    [
        (subject(lightning="2.2", torch="2.7"), AuditStatus.AFFECTED, {"lightning": "all", "torch": "all"}),
        (subject(lightning="2.2", torch="2.5"), AuditStatus.CLEAR, {"torch": "none"}),
        (subject(lightning="2.2"), AuditStatus.UNKNOWN, {None: "unknown"}),
        (subject(lightning="2.2", torch=""), AuditStatus.UNKNOWN, {"torch": "unknown"}),
        (subject(lightning="2.5"), AuditStatus.CLEAR, {"lightning": "none"}),
        (subject(lightning=">=2.2", torch="2.7"), AuditStatus.POSSIBLE, {"lightning": "some", "torch": "all"}),
        (subject(lightning=">=2.2", torch=""), AuditStatus.UNKNOWN, {"torch": "unknown"}),
        (subject(complete=True, torch="2.7"), AuditStatus.CLEAR, {None: "none"}),
    ],
)
def test_one_false_condition_clears_a_failure(of: Subject, status: AuditStatus, why: dict[str | None, str]) -> None:
    assessment = found(BOTH, of)
    assert assessment.status is status
    assert {package: overlap for package, _, overlap, _ in conditions(assessment)} == why


def test_unaffected_ranges_are_the_complement_of_the_affected_ones() -> None:
    assessment = found(BOTH, subject())
    assert (assessment.fixed, assessment.unaffected) == (("lightning>=2.4",), ("lightning<2.1", "torch<2.6"))
    holes = factories.repro(affected=factories.conditions("lightning!=2.4.*,!=2.5.*"))
    assert found(holes, subject()).fixed == ("lightning>=2.4,<2.6",)


ALTERNATIVES = factories.repro(
    packages=("lightning",), affected=factories.conditions("lightning<2.0.8 or lightning>=2.1,<2.5.3")
)
TWO = factories.repro(packages=("accelerate",), affected=factories.conditions("accelerate<1.13 or no bitsandbytes>=1"))


@pytest.mark.parametrize(
    ("repro", "of", "fixed", "older"),
    [
        (ALTERNATIVES, subject(lightning="2.4.0"), ("lightning>=2.5.3",), ("lightning>=2.0.8,<2.1",)),
        (ALTERNATIVES, subject(lightning="2.4.0+cpu"), ("lightning>=2.5.3",), ("lightning>=2.0.8,<2.1",)),
        (ALTERNATIVES, subject(lightning="2.0.7"), ("lightning>=2.0.8,<2.1", "lightning>=2.5.3"), ()),
        (ALTERNATIVES, subject(lightning=">=2.0.8,<3"), ("lightning>=2.5.3",), ("lightning>=2.0.8,<2.1",)),
        (ALTERNATIVES, subject(lightning=">=2,<3"), ("lightning>=2.0.8,<2.1", "lightning>=2.5.3"), ()),
        (ALTERNATIVES, subject(lightning=""), ("lightning>=2.0.8,<2.1", "lightning>=2.5.3"), ()),
        (ALTERNATIVES, subject(lightning="2.6"), ("lightning>=2.5.3",), ("lightning>=2.0.8,<2.1",)),
        (BOTH, subject(lightning="2.2", torch="2.7"), ("lightning>=2.4",), ("lightning<2.1", "torch<2.6")),
        (TWO, subject(accelerate="1.0"), ("accelerate>=1.13 with bitsandbytes>=1",), ()),
        (TWO, subject(accelerate="1.15", bitsandbytes="0.4"), ("accelerate>=1.13 with bitsandbytes>=1",), ()),
    ],
)
def test_the_releases_with_a_fix_lie_above_those_of_the_subject(
    repro: Repro, of: Subject, fixed: tuple[str, ...], older: tuple[str, ...]
) -> None:
    assessment = found(repro, of)
    assert (assessment.fixed, assessment.unaffected) == (fixed, older)


def test_the_series_that_upstream_left_out_are_older_than_the_newest() -> None:
    repro = load().find("RPR-0022")
    assert found(repro, subject(lightning="2.6.1", torch="2.13")).fixed == ()
    assert found(repro, subject(lightning="2.6.1", torch="2.13")).unaffected == ("lightning>=2.4,<2.6", "torch<2.6")
    assert found(repro, subject(lightning="2.3.3", torch="2.6")).fixed == ("lightning>=2.4,<2.6",)


def test_that_a_package_is_there_explains_nothing_where_a_range_of_it_does() -> None:
    assert conditions(found(ALTERNATIVES, subject(lightning="2.4.0"))) == [
        ("lightning", "lightning<2.5.3,>=2.1", "all", ["2.4.0 (requirements.txt:1)"])
    ]


@pytest.mark.of_all_scripts
def test_every_unaffected_range_of_the_catalogue_clears_its_failure() -> None:
    for repro in load():
        for raw in (*found(repro, subject()).fixed, *found(repro, subject()).unaffected):
            needed = factories.requirements(*raw.split(" with "))
            constraints = {r.name: (Constraint(str(r), Location("x"), releases=r.specifier),) for r in needed}
            of = Subject("x", constraints, complete=False)
            assert found(repro, of).status is AuditStatus.CLEAR, (repro.id, raw)


def test_a_failure_of_every_release_concerns_all_who_have_the_package() -> None:
    repro = factories.repro(packages=("lightning", "torch"))
    assert found(repro, subject(lightning="2.6", torch="2.13")).status is AuditStatus.AFFECTED
    assert found(repro, subject(lightning="1.9", torch="2.13")).status is AuditStatus.AFFECTED
    assert found(repro, subject(complete=True, lightning="2.6")).status is AuditStatus.CLEAR
    assert found(repro, subject(lightning="2.6")).status is AuditStatus.UNKNOWN
    assert found(repro, subject(lightning="2.6", torch="")).status is AuditStatus.AFFECTED


def test_only_workarounds_whose_requirements_can_be_met_are_offered() -> None:
    offered = [variant.name for variant in found(BOTH, subject(lightning="2.2", torch="2.7")).workarounds]
    assert offered == ["fixed"]
    offered = [variant.name for variant in found(BOTH, subject(lightning=">=2.2", torch="2.7")).workarounds]
    assert offered == ["fixed", "newer"]


@pytest.mark.parametrize("repro", list(load()), ids=lambda repro: repro.id)
def test_nothing_but_a_fix_or_a_workaround_of_the_catalogue_is_offered(repro: Repro) -> None:
    newest = {name: (Constraint("1!0", Location("x"), Version("1!0")),) for name in repro.named_packages}
    any_release = {name: (Constraint("any", Location("x"), releases=SpecifierSet()),) for name in repro.named_packages}
    for constraints in (newest, any_release):
        offered = found(repro, Subject("x", constraints, complete=False)).workarounds
        assert {variant.role for variant in offered} <= {Role.WORKS}
    assert {variant.name for variant in offered} == {v.name for v in repro.variants if v.role is Role.WORKS}


RAW = st.sampled_from(["", "2.0", "2.2", "2.5", "2.6", "2.7", ">=2.2", "<2.4", ">=2.6"])


@given(st.dictionaries(st.sampled_from(["lightning", "torch"]), RAW), st.booleans())
def test_an_unknown_failure_is_never_cleared(versions: dict[str, str], complete: bool) -> None:
    """A failure is clear if the subject names a release outside the range, or if a lock lacks the package."""
    of = subject(complete=complete, **versions)
    if found(BOTH, of).status is not AuditStatus.CLEAR:
        return
    ranges = {condition.only.name: condition.only.specifier for condition in BOTH.affected if condition.only}
    outside = [
        all(not ranges[name].contains(version) for version in ("2.2", "2.6", "2.7", "2.13") if _allowed(raw, version))
        for name, raw in versions.items()
        if raw
    ]
    assert any(outside) or (complete and len(versions) < 2)


def _allowed(raw: str, version: str) -> bool:
    return raw == version if raw[0].isdigit() else SpecifierSet(raw).contains(version)


def measurement(stack: str, verdict: Verdict = Verdict.REPRODUCED, device: str = "cpu", **versions: str) -> Measurement:
    unit = Unit(stack, BOTH.id, Device(device), "ddp")
    seen = {"failing": VariantVerdict(verdict, "X"), "fixed": VariantVerdict(Verdict.CLEAN)}
    return Measurement(unit, "", dt.date(2026, 1, 1), "warm", "Linux", "3.11.7", versions, 2, 1.0, seen)


CPU, CUDA = Device.CPU, Device.CUDA


@pytest.mark.parametrize(
    ("evidence", "summary"),
    [
        ([], EvidenceSummary((), (), (), (CPU, CUDA))),
        ([measurement("a", Verdict.GONE, lightning="2.2", torch="2.7")], EvidenceSummary((), (), (), (CPU, CUDA))),
        ([measurement("a", lightning="2.2", torch="2.7+cpu")], EvidenceSummary(("a",), (), (CPU,), (CUDA,))),
        (
            [
                measurement("a", lightning="2.3", torch="2.7"),
                measurement("b", device="cuda", lightning="2.3", torch="2.8"),
            ],
            EvidenceSummary((), ("a", "b"), (CPU, CUDA), ()),
        ),
    ],
)
def test_evidence_is_what_was_measured_and_what_is_only_documented(
    evidence: list[Measurement], summary: EvidenceSummary
) -> None:
    repro = replace(BOTH, devices=(CPU, CUDA))
    of = subject(lightning="2.2", torch="2.7")
    assert found(repro, of, {measurement.unit: measurement for measurement in evidence}).evidence == summary


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    ("versions", "status"),
    [
        ({"accelerate": "1.15.0"}, "possible"),
        ({"accelerate": "1.0"}, "affected"),
        ({"accelerate": "1.15.0", "bitsandbytes": "0.44"}, "affected"),
        ({"accelerate": "1.15.0", "bitsandbytes": "0.48"}, "clear"),
    ],
)
def test_an_unlisted_package_does_not_make_a_failure_certain(
    versions: dict[str, str], status: str, complete: bool
) -> None:
    of = subject(complete, **versions, lightning="2.6.1", torch="2.9.0")
    assert found(load().find("RPR-0002"), of).status == status


def test_the_absence_that_alone_decides_is_certain() -> None:
    repro = factories.repro(packages=("torch",), affected=factories.conditions("torch<2.11", "no lightning>=2.5.5"))
    assert found(repro, subject(True, torch="2.10")).status is AuditStatus.AFFECTED
    assert found(repro, subject(torch="2.10", lightning="2.6")).status is AuditStatus.CLEAR
