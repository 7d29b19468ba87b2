"""Until when a report says that its program worked."""

from __future__ import annotations

from datetime import date

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.worked_until import find_worked_until


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("The same code worked on 2025-02-24. Now the loss stays.", date(2025, 2, 24)),
        ("It trained well on March 3rd, 2025, and since then it fails.", date(2025, 3, 3)),
        ("My last good run was of 7 Oct 2024; now it does not learn.", date(2024, 10, 7)),
        ("Two weeks ago it worked, now it does not.", None),
        ("It worked last week and suddenly fails.", None),
        ("My script was working last month, and today it fails.", None),
        ("We ran the same job 3 weeks ago, now it fails.", None),
        ("I was able to train it a month ago; now it hangs.", None),
    ],
)
def test_the_day_until_which_it_worked(text: str, day: date | None) -> None:
    found = find_worked_until(read_issue(f"# It fails\n\n{text}\n"))
    assert found
    assert found.day == day
    assert (day.isoformat() if day else found.words) in found.text


@pytest.mark.parametrize(
    "text",
    [
        "It has never worked; I began two weeks ago, and now I ask.",
        "The release of 2025-02-24 is broken now.",
        "I trained 3 days and the loss is fine.",
        "We have been working on it since last week, and now we ask.",
        "I worked on this until yesterday, now I give up.",
        "I pretrained and trained another model a month ago, and now I use its weights.",
        "With datasets 2024.3.1 everything worked, now it fails.",
        "I found a good paper last week and now I try it.",
        "It worked on 2025-02-31, and now it fails.",
    ],
)
def test_other_days_are_none(text: str) -> None:
    assert find_worked_until(read_issue(f"# It fails\n\n{text}\n")) is None
