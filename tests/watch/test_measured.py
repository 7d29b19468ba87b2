"""What was measured is in the documentation, and gives no false alarm."""

from __future__ import annotations

from repros.engine import catalogue
from repros.watch.identify import checks_of
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


def test_the_headers_name_what_was_measured() -> None:
    repros = catalogue.load()
    for line in MEASURED:
        repro = repros.find(line["repro"])
        variant = repro.variant(line["variant"])
        assert variant is not None
        if line["fails"] and line["repro"] != "RPR-0012":
            assert line["expected"] == list(checks_of(repro, variant)), line
