"""The mark `long`: which cases of a long test a run takes."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE, NAME, KEPT = "tests/diagnose/watch/test_traincheck.py", "test_a_mechanism_is_found_again", 5


COLLECT = """\
import json, sys
import pytest
class Collected:
    def pytest_collection_finish(self, session):
        self.ids = [item.nodeid for item in session.items]
def collect(words):
    plugin = Collected()
    assert pytest.main(["--collect-only", "-qqq", "-p", "no:cacheprovider", *words], plugins=[plugin]) == 0
    return plugin.ids
print(json.dumps([collect(words) for words in json.loads(sys.argv[1])]))
"""
"""Collects several times in one process: pytest, the conftest and the file are imported once."""


def cases(*runs: list[str]) -> list[list[str]]:
    """Return, for each list of arguments, the cases of a long test that pytest would run."""
    command = [sys.executable, "-c", COLLECT, json.dumps(runs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    collected = json.loads(done.stdout.splitlines()[-1])
    return [[case for case in ids if f"::{NAME}[" in case] for ids in collected]


@pytest.mark.slow
def test_some_cases_run_and_all_by_command() -> None:
    everything, some, all_cells, named = cases(["--long", FILE], [FILE], ["--all-cells", FILE], [f"{FILE}::{NAME}"])
    assert len(some) == KEPT < len(everything)
    places = [everything.index(case) for case in some]
    gaps = {later - earlier for earlier, later in itertools.pairwise(places)}
    assert max(gaps) - min(gaps) <= 1, "evenly spread"
    assert all_cells == named == everything
