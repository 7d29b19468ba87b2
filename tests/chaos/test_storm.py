"""A few faults of each kind with one seed; `nox -s chaos` injects hundreds."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos import cells, paper, runners
from tests.chaos.cells import Place
from tests.chaos.storm import REAL, SHAM, Storm, choose

SEED = 20261121
QUICK = [
    *(cells.kill_a_rank, cells.kill_a_rank_after_its_end, cells.kill_the_leader, cells.kill_the_server) * 2,
    cells.kill_the_leader_of_a_daemon,
    cells.leave_a_daemon_without_environment,
    cells.stop_a_rank,
    cells.write_garbage,
    cells.hoard_files,
    cells.corrupt_events,
    cells.corrupt_events,
    cells.fill_the_disk,
    runners.kill_the_runner,
    runners.ask_the_runner_to_end,
    paper.damage_results,
    paper.damage_a_header,
]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="faults are aimed by means of /proc")
def test_nothing_that_must_not_happen_happens(tmp_path: Path) -> None:
    storm = Storm(list(enumerate(QUICK)), SEED, None, time.monotonic() + 240)
    storm.rage(tmp_path / "storm", 2, print)
    assert storm.violations == []
    assert storm.plan == []


def test_the_seed_decides() -> None:
    first, again, other = choose(1, 330, None), choose(1, 330, None), choose(2, 330, None)
    assert first == again != other
    assert {fault for _, fault in first} == set(SHAM)
    assert {fault for _, fault in choose(1, 330, Path("python"))} == {*SHAM, *REAL}


def test_what_must_not_happen_is_told(tmp_path: Path) -> None:
    def breaks(place: Place, _: object) -> str:
        raise ValueError("what it said")

    storm = Storm([(7, breaks)], SEED, None, time.monotonic() + 10)
    storm.rage(tmp_path / "storm", 1, print)
    assert storm.violations == ["fault 7 breaks: ValueError: what it said"]
    assert storm.counts == Counter({("breaks", "VIOLATION"): 1})
