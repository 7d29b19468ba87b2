"""Headers compared with evidence: how a contradiction is found, and that the catalogue has none."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine.evidence import Evidence, VariantVerdict, read
from repros.engine.matrix.check import find_contradictions
from repros.engine.stacks import load_stacks
from repros.model import ExpectedOutcome, Verdict
from repros.model.catalogue import Catalogue
from tests import factories as make
from tests.engine.evidence.samples import MEASUREMENT
from tests.package_catalogue import load

RANGE = make.conditions("lightning>=2.1,<2.4", "torch>=2.1")
CATALOGUE = Catalogue(
    (
        make.repro(
            affected=RANGE,
            variants=(make.variant(affected=RANGE), make.variant("fixed", ExpectedOutcome.PASSES, affected=RANGE)),
        ),
    )
)

measured = cache(read)


def evidence(lightning: str, **verdicts: Verdict) -> Evidence:
    versions = {"lightning": lightning, "torch": "2.1.2+cu121"}
    variants = {name: VariantVerdict(verdict) for name, verdict in verdicts.items()}
    one = replace(MEASUREMENT, versions=versions, variants=variants)
    return {one.unit: one}


@pytest.mark.parametrize(
    ("lightning", "failing", "fixed"),
    [
        ("2.1.3", Verdict.REPRODUCED, Verdict.CLEAN),
        ("2.4.0", Verdict.CLEAN, Verdict.CLEAN),
        ("2.1.3", Verdict.DIFFERENT, Verdict.FLAKY),
    ],
)
def test_a_verdict_that_fits_the_range_or_decides_nothing_is_not_a_contradiction(
    lightning: str, failing: Verdict, fixed: Verdict
) -> None:
    assert list(find_contradictions(CATALOGUE, evidence(lightning, failing=failing, fixed=fixed))) == []


@pytest.mark.parametrize(
    ("lightning", "variant", "verdict"),
    [
        ("2.3.3", "failing", Verdict.GONE),
        ("2.4.0", "failing", Verdict.REGRESSED),
        ("2.1.3", "fixed", Verdict.UNFIXED),
        # Judged with an earlier header, before the range was narrowed.
        ("2.4.0", "failing", Verdict.REPRODUCED),
    ],
)
def test_a_range_that_the_evidence_contradicts_is_named_with_both_sides(
    lightning: str, variant: str, verdict: Verdict, sentences: SnapshotAssertion
) -> None:
    (one,) = find_contradictions(CATALOGUE, evidence(lightning, **{variant: verdict}))
    assert str(one) == sentences


def test_evidence_of_removed_variants_and_repros_is_skipped() -> None:
    assert list(find_contradictions(CATALOGUE, evidence("2.4.0", renamed=Verdict.REGRESSED))) == []
    assert list(find_contradictions(Catalogue(()), evidence("2.4.0", failing=Verdict.REGRESSED))) == []


@pytest.mark.of_all_scripts
def test_the_catalogues_ranges_agree_with_its_evidence() -> None:
    assert [str(contradiction) for contradiction in find_contradictions(load(), measured())] == []


@pytest.mark.of_all_scripts
def test_the_evidence_names_existing_stacks_and_repros() -> None:
    stacks, repros = load_stacks(), {repro.id for repro in load()}
    assert {unit.stack for unit in measured()} <= set(stacks)
    assert {unit.repro for unit in measured()} <= repros


def test_the_evidence_was_measured_on_what_its_stack_locks() -> None:
    pinned = {
        name: {
            requirement.name: str(requirement.specifier).removeprefix("==")
            for requirement in stack.requirements
            if str(requirement.specifier).startswith("==")
        }
        for name, stack in load_stacks().items()
    }
    for unit, measurement in measured().items():
        for name, version in pinned[unit.stack].items():
            if name in measurement.versions:
                assert measurement.versions[name].partition("+")[0] == version, unit


def test_evidence_has_only_judged_verdicts_that_repeat() -> None:
    verdicts = {variant.verdict for measurement in measured().values() for variant in measurement.variants.values()}
    others = {verdict for verdict in verdicts if not verdict.shows_failure and not verdict.ran_clean}
    assert others <= {Verdict.DIFFERENT}
