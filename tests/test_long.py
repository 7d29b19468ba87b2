"""The mark `long`: which cases of a long test a run takes."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE, NAME, KEPT = "tests/diagnose/watch/test_traincheck.py", "test_a_mechanism_is_found_again", 5


def cases(*words: str) -> list[str]:
    """Return the cases of a long test that pytest would run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    return [line for line in done.stdout.splitlines() if f"::{NAME}[" in line]


@pytest.mark.slow
def test_some_cases_run_and_all_by_command() -> None:
    everything, some = cases("--long", FILE), cases(FILE)
    assert len(some) == KEPT < len(everything)
    places = [everything.index(case) for case in some]
    gaps = {later - earlier for earlier, later in itertools.pairwise(places)}
    assert max(gaps) - min(gaps) <= 1, "evenly spread"
    assert cases("--all-cells", FILE) == everything
    assert cases(f"{FILE}::{NAME}") == everything
