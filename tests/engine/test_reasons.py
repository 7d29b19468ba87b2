"""The sentence with which the judge gives the reason of each verdict."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from repros.engine.judge import combine, judge
from repros.model import CellResult, Verdict
from tests.engine.test_judge import FAILS, OTHER, RETURNED
from tests.engine.test_judge import TABLE as ENDINGS
from tests.engine.test_judge_signals import TABLE as SIGNALS
from tests.factories import observation, process

SHOWN = {Verdict.REPRODUCED, Verdict.CLEAN, Verdict.GONE, Verdict.UNFIXED}
"""The snapshot of `repros run` has the reasons of these."""


def line(result: CellResult) -> str:
    expected = result.cell.expectation
    what = expected.outcome if not expected.is_fix else f"{expected.outcome}, as a fix"
    return f"{what}: {result.verdict}: {result.reason}"


def test_the_reason_of_each_verdict(snapshot: SnapshotAssertion) -> None:
    results = [judge(wanted, observation(*processes)) for wanted, processes, *_ in (*ENDINGS, *SIGNALS)]
    lost = judge(FAILS, observation(broken="no disk"))
    gone = judge(FAILS, observation(RETURNED, process(1)))
    other = judge(FAILS, observation(RETURNED, OTHER))
    results += [combine([lost, other, other]), combine([other, gone, other])]
    assert snapshot == "\n".join(line(result) for result in results if result.verdict not in SHOWN)
