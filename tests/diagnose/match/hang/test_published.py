"""The kept figures on published dumps and logs, and the tables that are made of them."""

from __future__ import annotations

from tools.measure.flight_recorder import read_kept


def test_each_answer_names_the_ranks_that_were_stopped() -> None:
    faults = read_kept()["faults"]
    assert [fault["named"] for fault in faults] == [fault["stopped"] for fault in faults]
    assert [fault["dumps"] for fault in faults] == [16] * 4
