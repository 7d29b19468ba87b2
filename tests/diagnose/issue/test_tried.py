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
        ("A smaller batch did not really help.", Effect.NONE, "batch"),
        ("Clipping does not seem to help.", Effect.NONE, "Clipping"),
        ("The smaller batch only delays the NaN.", Effect.NONE, "batch"),
        ("With eager attention it freezes without an error.", Effect.NONE, "eager"),
        ("With eager attention nothing hangs, there is no error.", Effect.HELPS, "eager"),
        ("改用 fp32\uff0c没有解决。", Effect.NONE, "fp32"),
        ("单卡训练不正常。", Effect.NONE, "单卡"),
        ("单卡训练正常\uff0c多卡无法训练。", Effect.HELPS, "单卡"),
        ("fp32 没有问题。", Effect.HELPS, "fp32"),
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
        ("fp32 doesn't actually work.", Effect.HELPS),
        ("Training in fp32 hardly works.", Effect.HELPS),
        ("fp32 trains fine for 40 steps and then it diverges.", Effect.HELPS),
        ("I haven't tested whether fp32 helps, but on the CPU it works.", Effect.HELPS),
        ("In fp32 it freezes with no error message.", Effect.HELPS),
        ("换成 fp32 未解决。", Effect.HELPS),
        ("We train in fp32 with a rate of 1e-4.", Effect.NONE),
    ],
)
def test_what_is_not_done_or_has_no_result_has_no_effect(text: str, effect: Effect) -> None:
    assert not any("fp32" in clause for clause in clauses_with(effect, text))
