"""What was measured is in the documentation, is all that is to be measured, and gives no false alarm."""

from __future__ import annotations

import pytest

from tests.package_catalogue import load
from tools.measure.watch_catalogue import read_kept, runs_of
from tools.measure.watch_table import is_named, read_elsewhere, read_measured

pytestmark = pytest.mark.of_all_scripts
MEASURED = read_measured()


def test_every_variant_was_run() -> None:
    """On `current` or, as most were while torch 2.13 was the newest, on 2026-07: these are to be run again one day."""
    measured = {key: line["fails"] for key, line in read_kept().items()}
    wanted = {run.key: run.fails for run in runs_of(load(), ("home",))}
    for run in runs_of(load(), ("current",)):
        before = (run.key[0], "2026-07", run.key[2])
        wanted[before if before in measured and run.key not in measured else run.key] = run.fails
    assert measured == wanted, (
        "run: python -m tools.measure.watch_catalogue --stack home --stack current --missing --keep"
    )


def test_every_check_that_a_header_names_finds_its_variant_with_the_id_on_top() -> None:
    missed = [
        (line["repro"], line["variant"], line["stack"])
        for line in MEASURED
        if line["fails"] and line["expected"] and not is_named(line)
    ]
    assert missed == [], "take the check out of `finds`, or repair it"


def test_no_other_variant_gives_a_finding() -> None:
    repros = load()
    alarms = {
        (line["repro"], finding["check"])
        for line in MEASURED
        for finding in line["found"]
        if finding["check"] not in line["expected"]
        and not (line["fails"] and f"`{finding['check']}`" in repros.find(line["repro"]).sections.get("Watch", ""))
    }
    assert alarms == read_elsewhere(), "repair the check, or name it in the docstring's paragraph 'Watch:'"
