"""One cell, with the function that runs it replaced."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from repros.engine import cells
from repros.model import Cell, Ending, Observation, Repeats, Verdict
from tests.factories import cell, environment, observation, process


def test_a_cell_whose_runs_end_differently_is_flaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([Ending.RAISED, Ending.RETURNED, Ending.RAISED])

    def run(cell: Cell, folder: Path, stop: threading.Event | None, servers: object) -> Observation:
        return observation(process(0), process(1, next(ends)), folder=folder)

    monkeypatch.setattr(cells, "observe", run)
    result = cells.run_cell(cell(), tmp_path, repeat=3)
    assert (result.verdict, result.repeats) == (Verdict.FLAKY, Repeats(3, 2))


def test_a_folder_name_is_valid_on_every_file_system() -> None:
    strange = cell(environment=environment("/home/me/my env/bin/python"))
    assert cells.folder_name(strange) == "RPR-0001-failing-ddp-cpu-home-me-my-env-bin-python"
