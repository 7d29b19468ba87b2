"""Silent errors that were reported in public: what the watch says of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tools.measure.watch_reported import find, read_reported

REPORTED = read_reported()


@pytest.mark.long(keep=6)
@pytest.mark.slow
@pytest.mark.parametrize("row", REPORTED, ids=[row["program"] for row in REPORTED])
def test_the_checks_that_reported_report_again(row: dict[str, Any], warm_python: Path) -> None:
    assert find(row["program"], warm_python, "fork") == row["found"]


def test_an_error_that_is_not_found_has_a_reason() -> None:
    assert [row["program"] for row in REPORTED if bool(row["found"]) == bool(row["reason"])] == []
