"""The page of `repros compare` shows the kept comparisons, and every one without a difference has its reason."""

from __future__ import annotations

from tools.measure.compare_table import read_judged, read_lines


def test_every_failure_without_a_difference_has_its_reason() -> None:
    without = {line["repro"] for line in read_lines() if line["status"] != "different"}
    judged = read_judged()
    assert set(judged["no_difference"]) | set(judged["no_numbers"]) == without
    assert not set(judged["no_difference"]) & set(judged["no_numbers"])


def test_every_consequence_is_of_a_difference() -> None:
    different = {line["repro"] for line in read_lines() if line["status"] == "different"}
    assert set(read_judged()["consequence"]) <= different


def test_no_recording_has_failed() -> None:
    assert [line["repro"] for line in read_lines() if line["failures"]] == []
