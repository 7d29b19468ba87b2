"""What a report has tried, and with which effect."""

from __future__ import annotations

import pytest

from repros.diagnose.issue.tried import Effect, clauses_with


@pytest.mark.parametrize(
    ("text", "effect", "part"),
    [
        ("I lowered the rate, but it is still NaN.", Effect.NONE, "lowered the rate"),
        ("I tried fp32 and clipping. None of them helped.", Effect.NONE, "fp32"),
        ("In fp32 it works, but clipping makes no difference.", Effect.HELPS, "fp32"),
        ("In fp32 it works, but clipping makes no difference.", Effect.NONE, "clipping"),
        ("Without compile there is no such error.", Effect.HELPS, "compile"),
    ],
)
def test_a_change_has_an_effect(text: str, effect: Effect, part: str) -> None:
    assert any(part in clause for clause in clauses_with(effect, text))


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("Could it be fixed in fp32?", Effect.HELPS),
        ("I expect that it works in fp32.", Effect.HELPS),
        ("It does not work in fp32.", Effect.HELPS),
        ("We train in fp32 with a rate of 1e-4.", Effect.NONE),
    ],
)
def test_what_is_not_done_or_has_no_result_has_no_effect(text: str, effect: Effect) -> None:
    assert not any("fp32" in clause for clause in clauses_with(effect, text))
