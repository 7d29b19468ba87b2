"""Which cases of long tests a run takes, and with a seed of tests for each script."""

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
    runs = (["--long", FILE], [FILE], ["--all-cells", FILE], [f"{FILE}::{NAME}"])
    everything, some, all_cells, named, drawn, others = cases(*runs, *(["--seed", seed, FILE] for seed in "ab"))
    assert len(some) == KEPT < len(everything)
    places = [everything.index(case) for case in some]
    gaps = {later - earlier for earlier, later in itertools.pairwise(places)}
    assert max(gaps) - min(gaps) <= 1, "evenly spread"
    assert all_cells == named == everything
    assert len({*drawn}) == len({*others}) == KEPT
    assert {*drawn} != {*others}, "a seed draws cases of its own"


SAMPLES = """\
import json, sys
import pytest
from tests import cases
class Chosen:
    def pytest_collection_finish(self, session):
        chosen = ({*session.items} - cases.left_out(session.items, *arguments) for arguments in json.loads(sys.argv[2]))
        print(json.dumps([sorted(item.callspec.id for item in items) for items in chosen]))
assert pytest.main(["--collect-only", "-qqq", "-p", "no:cacheprovider", sys.argv[1]], plugins=[Chosen()]) == 0
"""
"""Prints the cases that different arguments of `left_out` leave of one collection."""


@pytest.mark.slow
def test_a_seed_takes_changed_scripts_and_a_sample() -> None:
    script = "repros/catalogue/fabric/submodule_call_skips_gradient_sync.py"
    chosen = [
        *((None, []), ("a", None), ("a", []), ("a", ["repros/cli/list.py"]), ("b", [])),
        *(("a", [script, "repros/catalogue/match.toml"]), ("a", ["repros/advise/export/pins.py"])),
        *(("a", ["tests/advise/export/test_osv.py"]),),
    ]
    test = "tests/advise/export/test_osv.py::test_every_record_of_the_catalogue_is_valid"
    done = subprocess.run(
        [sys.executable, "-c", SAMPLES, test, json.dumps(chosen)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    everything, unknown, sample, again, other, changed, tested, own = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith("[["))
    )
    assert everything == unknown == tested == own
    assert 0 < len(sample) < len(everything) / 5
    assert again == sample != other
    assert {*changed} == {*sample, "RPR-0005"}
