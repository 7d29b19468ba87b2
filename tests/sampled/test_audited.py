"""The audited entries are those that the written rule draws, and what was wrong has been corrected or is named."""

from __future__ import annotations

import pytest

from tests.package_catalogue import load
from tests.sampled.audited_table import Accuracy, drawn, read_audited

ENTRIES = read_audited()


@pytest.mark.of_all_scripts
def test_they_are_the_drawn_ones_in_the_order_of_the_draw() -> None:
    order = drawn(repro.id for repro in load())
    assert [entry.id for entry in ENTRIES] == order[: len(ENTRIES)]


def test_each_says_what_was_found() -> None:
    for entry in ENTRIES:
        assert entry.found, entry.id
        assert min(entry.threads.same, entry.threads.other, entry.threads.unread) >= 0, entry.id


def test_what_was_not_right_was_repaired_or_is_named_as_left() -> None:
    for entry in ENTRIES:
        if entry.accuracy is not Accuracy.RIGHT:
            assert entry.repaired or entry.left, entry.id


def test_a_report_of_another_cause_makes_an_entry_imprecise() -> None:
    for entry in ENTRIES:
        assert not (entry.threads.other and entry.accuracy is Accuracy.RIGHT), entry.id
