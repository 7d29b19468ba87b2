"""Cells side by side, with the function that runs one of them replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path

import pytest

from repros.engine import cells
from repros.model import Cell, Ending, Observation, Repeats, Result, Verdict
from tests.factories import cell, environment, observation, process


def test_two_jobs_run_side_by_side_and_the_faster_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=30)

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        both.wait()
        if cell.strategy == "slow":
            time.sleep(0.5)
        return observation(process(0), process(1), folder=folder)

    monkeypatch.setattr(cells, "run", run)
    both_cells = [cell(strategy="slow"), cell(strategy="fast")]
    assert [result.cell.strategy for result in cells.run_cells(both_cells, tmp_path, jobs=2)] == ["fast", "slow"]


def test_an_interrupt_ends_the_running_cells_and_starts_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def run(cell: Cell, folder: Path, stop: threading.Event, servers: object) -> Observation:
        started.append(cell.strategy)
        if cell.strategy != "0":
            assert stop.wait(30)
        return observation(process(0), process(1), folder=folder, broken="interrupted" if stop.is_set() else None)

    monkeypatch.setattr(cells, "run", run)
    results = cells.run_cells([cell(strategy=str(number)) for number in range(9)], tmp_path, jobs=2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(started) <= 3


def test_results_that_are_complete_at_an_interrupt_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=30)

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        both.wait()
        return observation(process(0), process(1), folder=folder)

    def interrupted(futures: list[Future[Result]]) -> Iterator[Future[Result]]:
        wait(futures, 30)
        yield futures[0]
        raise KeyboardInterrupt

    monkeypatch.setattr(cells, "run", run)
    monkeypatch.setattr(cells, "as_completed", interrupted)
    results = cells.run_cells([cell(strategy="one"), cell(strategy="two")], tmp_path, jobs=2)
    assert [next(results).cell.strategy, next(results).cell.strategy] == ["one", "two"]
    with pytest.raises(KeyboardInterrupt):
        next(results)


def test_a_cell_whose_runs_end_differently_is_flaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([Ending.RAISED, Ending.RETURNED, Ending.RAISED])

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        return observation(process(0), process(1, next(ends)), folder=folder)

    monkeypatch.setattr(cells, "run", run)
    result = cells.run_cell(cell(), tmp_path, repeat=3)
    assert (result.verdict, result.repeats) == (Verdict.FLAKY, Repeats(3, 2))


def test_a_folder_name_is_valid_on_every_file_system() -> None:
    strange = cell(environment=environment("/home/me/my env/bin/python"))
    assert cells.folder_name(strange) == "RPR-0001-failing-ddp-cpu-home-me-my-env-bin-python"
