"""Texts and numbers that a user looks for in an output."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.model.errors import ReprosError
from repros.scripts.bisect.script.patterns import parse_patterns


@pytest.mark.parametrize(
    ("mark", "output", "found"),
    [
        ("nan", "step 3 loss nan", True),
        ("nan", "step 3 loss 0.2", False),
        ("version 2.0.9", "version 2.0.9", True),
        ("version 2.0.9", "version 2.0.10", False),
        ("0.31", "0.31", True),
        ("0.31", "loss=0.3149999", True),
        ("0.31", "loss: 0.3151", False),
        ("0.31", "release 1.0.31", False),
        ("0.31", "0.31.4", False),
        ("0.31", "3.1e-1", True),
        ("loss 2.0", "loss: 2.04", True),
        ("loss 2.0", "loss = 2.06", False),
        ("loss 2.0", "accuracy 2.0", False),
        ("loss: 2.0", "loss 1.96 accuracy 0.5", True),
        ("train  loss 2.0", "train loss\n 2.0", True),
        ("epoch 3", "epoch 3", True),
        ("epoch 3", "epoch 3.4", False),
        ("epoch 3", "epoch 31", False),
        ("-0.5", "-0.52", True),
        ("-0.5", "0.5", False),
    ],
)
def test_a_mark_is_found(mark: str, output: str, *, found: bool) -> None:
    patterns = parse_patterns(mark, None)
    assert patterns.found_in(output) == ((f"good {mark!r}",) if found else ())


def test_a_tolerance_takes_the_place_of_the_last_decimal() -> None:
    assert parse_patterns(None, "loss 2.0", 0.4).found_in("loss 2.39") == ("bad 'loss 2.0'",)
    assert parse_patterns(None, "loss 2.0", 0.4).found_in("loss 2.41") == ()
    assert parse_patterns(None, "loss 2.0", 0).found_in("loss 2.01") == ()
    assert parse_patterns(None, "loss 2.0", 0).found_in("loss 2.00") == ("bad 'loss 2.0'",)


@pytest.mark.parametrize(
    ("good", "bad", "tolerance"),
    [
        ("loss", "loss nan", None),
        ("loss nan", "loss", None),
        ("nan", "nan", None),
        ("loss 0.30", "loss 0.31", 0.01),
        ("loss 0.3", "loss 0.34", None),
        ("0.3", "0.3", None),
    ],
)
def test_two_marks_that_one_output_may_hold_are_refused(good: str, bad: str, tolerance: float | None) -> None:
    with pytest.raises(ReprosError, match=f"--good '{good}'.*--bad '{bad}'"):
        parse_patterns(good, bad, tolerance)


@pytest.mark.parametrize(
    ("good", "bad", "tolerance"),
    [("loss 0.30", "loss 0.32", None), ("loss 0.3", "accuracy 0.3", 1), ("fine", "nan", None)],
)
def test_two_marks_that_exclude_each_other_are_taken(good: str, bad: str, tolerance: float | None) -> None:
    assert parse_patterns(good, bad, tolerance).labels == (f"good {good!r}", f"bad {bad!r}")


@pytest.mark.parametrize(
    ("good", "bad", "tolerance"),
    [
        ("", None, None),
        (None, "  ", None),
        ("fine", None, 0.1),
    ],
)
def test_what_is_no_mark_is_refused(
    good: str | None, bad: str | None, tolerance: float | None, sentences: SnapshotAssertion
) -> None:
    with pytest.raises(ReprosError) as refused:
        parse_patterns(good, bad, tolerance)
    assert str(refused.value) == sentences
