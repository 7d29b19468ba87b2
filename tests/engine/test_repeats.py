"""One result for the repeats of one cell: the outcome that all share, or flaky."""

from __future__ import annotations

from dataclasses import replace

from repros.engine.judge import combine, judge
from repros.model import Ending, ExpectedOutcome, Repeats, Verdict
from tests.factories import cell, observation, process, raised

FAILS = cell(ExpectedOutcome.FAILS)
OTHER = process(1, Ending.RAISED, chain=(raised("quite another failure"),))
ALWAYS = judge(FAILS, observation(process(0), process(1, Ending.RAISED)))
OTHERWISE = judge(FAILS, observation(process(0), OTHER))
NEVER = judge(FAILS, observation(process(0), process(1)))
LOST = judge(FAILS, observation(broken="no disk"))


def test_repeats_that_agree_give_their_common_result() -> None:
    assert combine([ALWAYS] * 3) == replace(ALWAYS, repeats=Repeats(3, 3))


def test_repeats_that_disagree_are_flaky_and_show_the_first_unusual_one() -> None:
    result = combine([ALWAYS, ALWAYS, NEVER, ALWAYS, OTHERWISE])
    assert (result.verdict, result.repeats) == (Verdict.FLAKY, Repeats(5, 3))
    assert result.observation == NEVER.observation


def test_the_same_verdict_with_another_signature_is_flaky() -> None:
    another = replace(OTHERWISE, signature="KeyError: 3")
    assert combine([OTHERWISE, another]).verdict is Verdict.FLAKY


def test_a_repeat_that_could_not_be_judged_neither_agrees_nor_makes_a_cell_flaky() -> None:
    result = combine([LOST, ALWAYS, ALWAYS])
    assert (result.verdict, result.repeats) == (Verdict.REPRODUCED, Repeats(3, 2))


def test_without_a_judged_repeat_the_result_is_infra() -> None:
    assert combine([LOST, LOST]) == replace(LOST, repeats=Repeats(2, 0))
