from __future__ import annotations

from dataclasses import replace

import pytest

from repros.engine import record
from repros.evidence.files import Evidence, Seen
from repros.evidence.unit import Unit
from repros.matrix.check import against, splits
from repros.model import Category, Result, Verdict
from tests import factories as make
from tests.evidence.test_files import SEEN

UNIT = Unit("current", "RPR-0001", "cpu", "ddp")


def line(verdict: Verdict) -> record.RecordLine:
    return record.line(Result(make.cell(), verdict, ""))


def evidence(verdict: Verdict) -> Evidence:
    return {UNIT: replace(SEEN, unit=UNIT, seen={"failing": Seen(verdict)})}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_is_seen_as_its_evidence_says_does_not_disagree(verdict: Verdict) -> None:
    assert against([line(verdict)], evidence(verdict)) == []


@pytest.mark.parametrize(
    ("seen", "known", "said"),
    [
        (
            Verdict.GONE,
            Verdict.REPRODUCED,
            "news: RPR-0001 failing ddp cpu current is gone; its evidence says reproduced",
        ),
        (
            Verdict.REGRESSED,
            Verdict.CLEAN,
            "news: RPR-0001 failing ddp cpu current is regressed; its evidence says clean",
        ),
        (
            Verdict.DIFFERENT,
            Verdict.CLEAN,
            "trouble: RPR-0001 failing ddp cpu current is different; its evidence says clean",
        ),
        (
            Verdict.CLEAN,
            Verdict.REPRODUCED,
            "trouble: RPR-0001 failing ddp cpu current is clean; its evidence says reproduced",
        ),
        (Verdict.FLAKY, None, "trouble: RPR-0001 failing ddp cpu current is flaky; there is no evidence of it"),
        (Verdict.GONE, None, "news: RPR-0001 failing ddp cpu current is gone; there is no evidence of it"),
    ],
)
def test_a_disagreement_names_the_verdict_and_whether_it_is_news_or_trouble(
    seen: Verdict, known: Verdict | None, said: str
) -> None:
    (one,) = against([line(seen)], evidence(known) if known else {})
    assert str(one) == said
    assert one.category is (Category.NEWS if said.startswith("news") else Category.TROUBLE)


@pytest.mark.parametrize("verdict", [Verdict.UNAVAILABLE, Verdict.INFRA])
def test_what_was_not_judged_changes_nothing(verdict: Verdict) -> None:
    assert against([line(verdict)], evidence(Verdict.REPRODUCED)) == []


def test_of_several_runs_of_a_cell_the_last_counts() -> None:
    lines = [line(Verdict.DIFFERENT), line(Verdict.REPRODUCED)]
    assert against(lines, evidence(Verdict.REPRODUCED)) == []
    assert len(against(lines[::-1], evidence(Verdict.REPRODUCED))) == 1


def test_a_new_repro_that_agrees_with_its_header_needs_no_evidence_yet() -> None:
    assert against([line(Verdict.REPRODUCED)], {}) == []


def test_two_devices_are_held_together_where_both_were_measured() -> None:
    real = replace(SEEN, unit=Unit("2023-12", "RPR-0001", "cuda", "ddp"))
    alone = replace(SEEN, unit=Unit("2024-03", "RPR-0001", "cuda", "ddp"))
    assert list(splits({one.unit: one for one in (SEEN, real, alone)})) == []
    other = replace(real, seen={**real.seen, "fixed": Seen(Verdict.UNFIXED, "RuntimeError: no")})
    (split,) = splits({SEEN.unit: SEEN, other.unit: other})
    assert str(split) == "RPR-0001 ddp cuda 2023-12 fixed: unfixed (RuntimeError: no) on cuda, clean (None) on sim"
