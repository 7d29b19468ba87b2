"""A few faults of each kind with one seed; `nox -s chaos` injects hundreds."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos import accelerator_faults, cell_faults, file_faults, machine_faults, runner_faults, stopped_faults
from tests.chaos.run import FAULTS, TORCH_FAULTS, ChaosRun, plan_faults
from tests.chaos.worker import Worker

SEED = 20261121
KILLS = (
    cell_faults.kill_a_rank,
    cell_faults.kill_a_rank_after_its_end,
    cell_faults.kill_the_leader,
    cell_faults.kill_the_server,
)
QUICK = [
    *KILLS * 2,
    cell_faults.kill_the_leader_of_a_daemon,
    cell_faults.leave_a_daemon_without_environ,
    cell_faults.stop_a_rank,
    cell_faults.write_garbage,
    cell_faults.exhaust_file_descriptors,
    cell_faults.corrupt_events,
    cell_faults.corrupt_events,
    cell_faults.fill_the_disk,
    runner_faults.kill_the_runner,
    runner_faults.interrupt_the_runner,
    file_faults.damage_results,
    file_faults.damage_a_header,
    stopped_faults.stop_the_leader,
    stopped_faults.end_a_process,
    machine_faults.hide_the_network,
    machine_faults.match_another_encoding,
]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="faults find their targets by /proc")
def test_no_fault_violates_an_invariant(tmp_path: Path) -> None:
    run = ChaosRun(list(enumerate(QUICK)), SEED, None, time.monotonic() + 240)
    run.inject_all(tmp_path / "run", 2, print)
    assert run.violations == []
    assert run.plan == []


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="faults find their targets by /proc")
def test_a_damaged_accelerator_is_made_anew(tmp_path: Path, current_python: Path) -> None:
    fault = accelerator_faults.damage_the_accelerator
    run = ChaosRun([(0, fault), (1, fault)], SEED, current_python, time.monotonic() + 240)
    run.inject_all(tmp_path / "run", 1, print)
    assert run.violations == []
    assert run.injected == 2


def test_the_kept_run_had_every_fault_and_no_violation() -> None:
    kept = json.loads(Path(__file__).with_name("kept.json").read_text("utf-8"))
    known = {fault.__name__ for fault in {**FAULTS, **TORCH_FAULTS}}
    assert set(kept["outcomes"]) == known, "faults have changed; run: nox -s chaos -- --out tests/chaos/kept.json"
    assert (kept["violations"], kept["left_out"]) == ([], 0)
    counts = [item for outcomes in kept["outcomes"].values() for item in outcomes.items()]
    assert sum(count for outcome, count in counts if not outcome.startswith("not injected")) == kept["injected"]


def test_the_seed_decides_the_plan() -> None:
    first, again, other = plan_faults(1, 330, None), plan_faults(1, 330, None), plan_faults(2, 330, None)
    assert first == again != other
    assert {fault for _, fault in first} == {*FAULTS}
    assert {fault for _, fault in plan_faults(1, 330, Path("python"))} == {*FAULTS, *TORCH_FAULTS}


def test_an_unexpected_error_is_a_violation(tmp_path: Path) -> None:
    def breaks(worker: Worker, _: object) -> str:
        raise ValueError("its message")

    run = ChaosRun([(7, breaks)], SEED, None, time.monotonic() + 10)
    run.inject_all(tmp_path / "run", 1, print)
    assert run.violations == ["fault 7 breaks: ValueError: its message"]
    assert run.outcomes == Counter({("breaks", "VIOLATION"): 1})
    figures = run.figures(1.6)
    assert figures["outcomes"] == {"breaks": {"VIOLATION": 1}}
    assert (figures["seconds"], figures["injected"], figures["left_out"]) == (2, 1, 0)
    assert figures["violations"] == run.violations
