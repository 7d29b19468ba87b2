"""What was measured is in the documentation, and gives no false alarm."""

from __future__ import annotations

from tests.tools.watch_table import PAGE, fill, read_measured

MEASURED = read_measured()
ELSEWHERE = {("RPR-0018", "epoch_cut_short")}
"""Findings of another failure (RPR-0027) that these versions have too."""


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text("utf-8")
    assert fill(page, MEASURED) == page, "run: python -m tests.tools.watch_table"


def test_every_failing_variant_with_a_check_is_found_with_its_id_on_top() -> None:
    wrong = [
        (line["repro"], line["variant"])
        for line in MEASURED
        if line["expected"]
        if line["repro"]
        not in [one["ids"][0] for one in line["found"] if one["ids"] and one["check"] in line["expected"]]
    ]
    assert wrong == []


def test_no_other_variant_gives_a_finding() -> None:
    alarms = {
        (line["repro"], one["check"])
        for line in MEASURED
        for one in line["found"]
        if one["check"] not in line["expected"]
    }
    assert alarms == ELSEWHERE
