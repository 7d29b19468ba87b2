"""The kept figures of the cluster: the page says them, and they are within the targets."""

from __future__ import annotations

from tests.cluster.kept import COMMAND, PAGE, fill, read

KEPT = read()


def test_the_page_says_them() -> None:
    page = PAGE.read_text("utf-8")
    assert fill(page, KEPT) == page, f"run: {COMMAND}"


def test_a_cell_costs_less_than_fifty_milliseconds() -> None:
    for found in KEPT["cost"]["milliseconds"].values():
        assert found["on the cluster"] - found["here"] < 50


def test_the_storm_had_fifty_faults_and_no_violation() -> None:
    assert sum(KEPT["storm"]["faults"].values()) >= 50
    assert KEPT["storm"]["violations"] == 0


def test_no_cell_had_another_verdict() -> None:
    assert KEPT["compare"]["other verdicts"] == 0
    assert KEPT["compare"]["repros"] >= 12
    assert len(KEPT["compare"]["stacks"]) == 2
