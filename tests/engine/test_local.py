"""Cells side by side: with the function that runs one of them replaced, and in real processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import pytest

from repros.engine import cells, local
from repros.engine.inventory import take_inventory
from repros.engine.run_options import Observer, RunOptions
from repros.engine.schedule import Timing
from repros.model import Cell, Device, End, Ending, Launch, Observation, Signature, Unavailable, Verdict
from tests.factories import cell, environment, observation, process, variant


class OnStart(Observer):
    """Calls a function for each cell that starts."""

    def __init__(self, call: Callable[[Cell], None]) -> None:
        self._call = call

    def started(self, cell: Cell) -> None:
        self._call(cell)


def test_two_jobs_run_side_by_side_and_the_faster_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both, is_first_there = threading.Barrier(2, timeout=60), threading.Event()

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        both.wait()
        if cell.strategy == "slow":
            assert is_first_there.wait(60)
        return observation(process(0), process(1), folder=folder)

    monkeypatch.setattr(cells, "observe", run)
    both_cells = [cell(strategy="slow"), cell(strategy="fast")]
    results = local.run_cells(both_cells, tmp_path, RunOptions(jobs=2))
    assert next(results).cell.strategy == "fast"
    is_first_there.set()
    assert [result.cell.strategy for result in results] == ["slow"]


def test_an_interrupt_ends_the_running_cells_and_starts_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def run(cell: Cell, folder: Path, stop: threading.Event, servers: object) -> Observation:
        started.append(cell.strategy)
        if cell.strategy != "0":
            assert stop.wait(60)
        return observation(process(0), process(1), folder=folder, broken="interrupted" if stop.is_set() else None)

    monkeypatch.setattr(cells, "observe", run)
    results = local.run_cells([cell(strategy=str(number)) for number in range(9)], tmp_path, RunOptions(jobs=2))
    next(results)
    results.close()
    assert len(started) <= 3


def test_results_that_are_complete_at_an_interrupt_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=60)

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        both.wait()
        return observation(process(0), process(1), folder=folder)

    class Interrupted:
        """Gives the plan and the first result, and is interrupted when the second is there."""

        def __init__(self) -> None:
            self._events: SimpleQueue[object] = SimpleQueue()
            self._given = 0
            self.put = self._events.put

        def get(self) -> object:
            event = self._events.get()
            self._given += 1
            if self._given == 3:
                raise KeyboardInterrupt
            return event

    monkeypatch.setattr(cells, "observe", run)
    monkeypatch.setattr(local, "SimpleQueue", Interrupted)
    results = local.run_cells([cell(strategy="one"), cell(strategy="two")], tmp_path, RunOptions(jobs=2))
    assert {next(results).cell.strategy, next(results).cell.strategy} == {"one", "two"}
    with pytest.raises(KeyboardInterrupt):
        next(results)


def cuda_cells(number: int, processes: int, gpus: int) -> list[Cell]:
    place = environment(counts={Device.CUDA: gpus})
    return [
        cell(strategy=str(number), device=Device.CUDA, processes=processes, environment=place)
        for number in range(number)
    ]


@pytest.mark.parametrize(
    ("visible", "processes", "together"),
    [("GPU-a,GPU-b,GPU-c,GPU-d", 2, 2), ("MIG-a,MIG-b", 1, 2), ("3,1,0", 1, 3), ("3,1,0", 2, 1)],
)
def test_each_cuda_cell_has_gpus_of_its_own(
    visible: str, processes: int, together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, running, most = threading.Lock(), list[str](), 0
    at_once = threading.Barrier(together, timeout=60)

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        nonlocal most
        with lock:
            assert not set(cell.gpus) & set(running)
            running.extend(cell.gpus)
            most = max(most, len(running))
        at_once.wait()
        with lock:
            for gpu in cell.gpus:
                running.remove(gpu)
        assert len(cell.gpus) == processes
        return observation(process(0), process(1), folder=folder)

    monkeypatch.setattr(cells, "observe", run)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(local, "take_inventory", lambda gpus: replace(take_inventory(gpus), cores=64.0))
    planned = cuda_cells(12, processes, len(visible.split(",")))
    assert [result.verdict for result in local.run_cells(planned, tmp_path)] == [Verdict.GONE] * 12
    assert most == together * processes


def test_cells_that_share_gpus_run_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=60)

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        assert cell.gpus == ("GPU-a",)
        both.wait()
        return observation(process(0), process(1), folder=folder)

    monkeypatch.setattr(cells, "observe", run)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a")
    assert len(list(local.run_cells(cuda_cells(2, 1, 1), tmp_path, RunOptions(jobs=2, share_gpus=True)))) == 2


def test_a_documented_hang_starts_first_and_takes_no_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others_ended, started = threading.Event(), list[str]()
    ended = count(1)

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        if cell.strategy == "hang":
            assert others_ended.wait(30), "the two slots are for the others"
        elif next(ended) == 6:
            others_ended.set()
        return observation(process(0), process(1), folder=folder)

    monkeypatch.setattr(cells, "observe", run)
    hang = variant(signature=Signature(ends=End(Ending.TIMED_OUT)))
    planned: list[Cell] = [cell(strategy=str(number)) for number in range(6)]
    planned.append(cell(strategy="hang", variant=hang))
    results = local.run_cells(
        planned, tmp_path, RunOptions(jobs=2), OnStart(lambda cell: started.append(cell.strategy))
    )
    assert {result.verdict for result in results} == {Verdict.GONE}, "it had not ended when the others had"
    assert "hang" in started[:3], "each announces itself in a thread of its own"


def test_one_job_gives_results_in_the_order_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "observe", lambda cell, folder, *_: observation(process(0), process(1), folder=folder))
    none = Unavailable(cell(strategy="none"), "needs g++")
    planned: list[Cell | Unavailable] = [cell(strategy="short"), none, cell(strategy="long")]
    seconds = {"short": 1.0, "long": 9.0}
    results = list(
        local.run_cells(planned, tmp_path, RunOptions(jobs=1, timings=lambda cell: Timing(seconds[cell.strategy])))
    )
    assert [result.cell.strategy for result in results] == ["short", "none", "long"]
    assert results[1].reason == "needs g++"


def test_an_error_in_the_callers_function_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "observe", lambda cell, folder, *_: observation(process(0), process(1), folder=folder))

    def refuse(cell: Cell) -> None:
        raise RuntimeError("no terminal")

    with pytest.raises(RuntimeError, match="no terminal"):
        list(local.run_cells([cell(strategy=str(number)) for number in range(5)], tmp_path, observer=OnStart(refuse)))


SHOWS_ITS_GPUS = """\
import os
raise ValueError(os.environ["CUDA_VISIBLE_DEVICES"])
"""


@pytest.mark.parametrize("launch", [Launch.WARM, Launch.COLD])
def test_real_ranks_see_the_gpus_of_their_cell_alone(
    launch: Launch, toy_cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "shows_its_gpus.py"
    script.write_text(SHOWS_ITS_GPUS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c,GPU-d")
    toy = toy_cell("raises")
    # No torch: what the warm server imports is not in question here.
    place = replace(toy.environment, counts={Device.CUDA: 4}, versions={})
    on_two = replace(toy, repro=replace(toy.repro, path=script), device=Device.CUDA, processes=2, environment=place)
    planned = [replace(on_two, strategy=name) for name in ("one", "two", "three")]
    results = list(local.run_cells(planned, tmp_path / "runs", RunOptions(jobs=3, launch=launch)))
    seen = {result.signature for result in results}
    assert seen <= {"ValueError: GPU-a,GPU-b", "ValueError: GPU-c,GPU-d"}
    assert {",".join(result.cell.gpus) for result in results} == {"GPU-a,GPU-b", "GPU-c,GPU-d"}
    for result in results:
        assert result.signature == f"ValueError: {','.join(result.cell.gpus)}"


BURNS = """\
import subprocess, sys, time
while time.process_time() < 0.5:
    pass
subprocess.run([sys.executable, "-S", "-c", "import time\\nwhile time.process_time() < 0.4: pass"], check=True)
time.sleep(1)
"""


@pytest.mark.parametrize("launch", [Launch.WARM, Launch.COLD])
def test_the_processor_time_of_real_cells_is_that_of_all_their_processes(
    launch: Launch, toy_cell: Callable[..., Cell], tmp_path: Path
) -> None:
    script = tmp_path / "burns.py"
    script.write_text(BURNS)
    toy = toy_cell("raises", "fixed")
    wanted = replace(toy, repro=replace(toy.repro, path=script), environment=replace(toy.environment, versions={}))
    (result,) = local.run_cells([wanted], tmp_path / "runs", RunOptions(launch=launch))
    assert result.observation is not None
    assert 0.85 <= result.observation.processor <= 1.6, "half a second of its own, the child's, and the imports"
    assert result.observation.seconds >= result.observation.processor
