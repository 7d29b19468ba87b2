"""The causes that a report leaves, and what decides where it leaves none."""

from __future__ import annotations

import pytest

from repros.diagnose.issue.facts import Weighed
from repros.diagnose.messages.family import Cause
from repros.scripts.triage.weighed_answer import excluded_section


@pytest.mark.parametrize(
    ("symptom", "words"),
    [("hang-start", "py-spy"), ("memory-grows", "memory"), ("loss-zero", "wrong value"), ("", "wrong value")],
)
def test_what_decides_where_no_cause_is_left(symptom: str, words: str) -> None:
    weighed = Weighed((), ((Cause("a part waits", "wait less"), "nothing waits"),))
    excluded, missing = excluded_section(weighed, symptom)
    assert excluded.bodies == ("a part waits, as nothing waits",)
    assert words in missing.bodies[0]


def test_nothing_is_missing_where_a_cause_is_left() -> None:
    weighed = Weighed((Cause("a", "b"),), ((Cause("c", "d"), "e"),))
    assert [section.label for section in excluded_section(weighed, "hang")] == ["excluded"]
