"""What was measured is in the documentation, is all that is to be measured, and gives no false alarm."""

from __future__ import annotations

import pytest

from repros.engine import catalogue
from tests.tools.watch_catalogue import read_kept, runs_of
from tests.tools.watch_table import PAGE, UNSEEN, fill, is_named, read_measured, read_reasons

pytestmark = pytest.mark.of_all_scripts
MEASURED = read_measured()


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text("utf-8")
    assert fill(page, MEASURED) == page, "run: python -m tests.tools.watch_table"


def test_every_variant_was_run() -> None:
    """On `current` or, as most were while torch 2.13 was the newest, on 2026-07: these are to be run again one day."""
    measured = {key: line["fails"] for key, line in read_kept().items()}
    wanted = {run.key: run.fails for run in runs_of(catalogue.load(), ("home",))}
    for run in runs_of(catalogue.load(), ("current",)):
        before = (run.key[0], "2026-07", run.key[2])
        wanted[before if before in measured and run.key not in measured else run.key] = run.fails
    assert measured == wanted, (
        "run: python -m tests.tools.watch_catalogue --stack home --stack current --missing --keep"
    )


def test_every_failing_variant_is_found_with_its_id_on_top_or_has_a_reason() -> None:
    missed = {(line["repro"], line["variant"]) for line in MEASURED if line["fails"] and not is_named(line)}
    remedy = "name the check that finds it in `finds` of the header, or say in tests/watch/reasons.toml why none can"
    assert missed == set(UNSEEN), remedy


def test_no_other_variant_gives_a_finding() -> None:
    alarms = {
        (line["repro"], finding["check"])
        for line in MEASURED
        for finding in line["found"]
        if finding["check"] not in line["expected"]
    }
    assert alarms == set(read_reasons("elsewhere")), "repair the check, or say in tests/watch/reasons.toml what it sees"
