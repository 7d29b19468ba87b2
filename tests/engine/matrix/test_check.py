from __future__ import annotations

from dataclasses import replace

import pytest

from repros.engine import record
from repros.engine.evidence import Evidence, Unit, VariantVerdict
from repros.engine.matrix.check import find_disagreements
from repros.engine.record import RecordLine
from repros.model import Category, CellResult, Device, Verdict
from tests import factories as make
from tests.engine.evidence.samples import MEASUREMENT

UNIT = Unit("current", "RPR-0001", Device.CPU, "ddp")


def line(verdict: Verdict) -> RecordLine:
    return record.line(CellResult(make.cell(), verdict, ""))


def evidence(verdict: Verdict) -> Evidence:
    return {UNIT: replace(MEASUREMENT, unit=UNIT, variants={"failing": VariantVerdict(verdict)})}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_equal_to_its_evidence_does_not_disagree(verdict: Verdict) -> None:
    assert find_disagreements([line(verdict)], evidence(verdict)) == []


@pytest.mark.parametrize(
    ("verdict", "known"),
    [
        (Verdict.GONE, Verdict.REPRODUCED),
        (Verdict.REGRESSED, Verdict.CLEAN),
        (Verdict.DIFFERENT, Verdict.CLEAN),
        (Verdict.CLEAN, Verdict.REPRODUCED),
        (Verdict.FLAKY, None),
        (Verdict.GONE, None),
    ],
)
def test_a_disagreement_names_the_verdict_and_whether_it_is_news_or_trouble(
    verdict: Verdict, known: Verdict | None
) -> None:
    (one,) = find_disagreements([line(verdict)], evidence(known) if known else {})
    assert (one.variant, one.verdict, one.evidence) == ("failing", verdict, known)
    assert one.category is (Category.NEWS if verdict in {Verdict.GONE, Verdict.REGRESSED} else Category.TROUBLE)


@pytest.mark.parametrize("verdict", [Verdict.UNAVAILABLE, Verdict.INFRA])
def test_a_cell_that_was_not_judged_does_not_disagree(verdict: Verdict) -> None:
    assert find_disagreements([line(verdict)], evidence(Verdict.REPRODUCED)) == []


def test_of_several_runs_of_a_cell_the_last_counts() -> None:
    lines = [line(Verdict.DIFFERENT), line(Verdict.REPRODUCED)]
    assert find_disagreements(lines, evidence(Verdict.REPRODUCED)) == []
    assert len(find_disagreements(lines[::-1], evidence(Verdict.REPRODUCED))) == 1


def test_a_new_repro_that_agrees_with_its_header_needs_no_evidence_yet() -> None:
    assert find_disagreements([line(Verdict.REPRODUCED)], {}) == []
