from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from repros.matrix import unit
from repros.matrix.unit import Unit, inputs
from repros.model import Device, Repro, Stack
from repros.model.stack import Size
from tests import factories as make


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    lock = tmp_path / "tiny.lock.txt"
    lock.write_text("torch==2.1.2\n")
    return Stack("tiny", "", "3.11", (), dt.date(2026, 1, 1), lock, Size(1, 1))


@pytest.fixture
def repro(tmp_path: Path) -> Repro:
    script = tmp_path / "script.py"
    script.write_text("raise RuntimeError\n")
    return make.repro(path=script)


def test_a_unit_reads_as_cells_do() -> None:
    assert str(Unit("2023-12", "RPR-0001", "sim", "ddp")) == "RPR-0001 ddp sim 2023-12"


def test_the_same_inputs_are_the_same(repro: Repro, stack: Stack) -> None:
    assert inputs(repro, stack, Device.CPU) == inputs(repro, stack, Device.CPU)
    assert len(inputs(repro, stack, Device.CPU)) == 16


def test_the_script_counts(repro: Repro, stack: Stack) -> None:
    before = inputs(repro, stack, Device.CPU)
    repro.path.write_text("raise ValueError\n")
    assert inputs(repro, stack, Device.CPU) != before


def test_the_lock_counts(repro: Repro, stack: Stack) -> None:
    before = inputs(repro, stack, Device.CPU)
    stack.lock.write_text("torch==2.2.2\n")
    assert inputs(repro, stack, Device.CPU) != before


def test_the_engine_counts(repro: Repro, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    before = inputs(repro, stack, Device.CPU)
    monkeypatch.setattr(unit, "engine", lambda: "another engine")
    assert inputs(repro, stack, Device.CPU) != before


def test_the_simulated_accelerator_counts_for_its_own_cells_only(
    repro: Repro, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {device: inputs(repro, stack, device) for device in Device}
    monkeypatch.setattr(unit, "simulator", lambda: "another one")
    changed = {device for device in Device if inputs(repro, stack, device) != before[device]}
    assert changed == {Device.SIM}


def test_the_engine_is_all_that_a_cell_goes_through() -> None:
    """Every module that the journey imports on the way to a verdict is named, or only starts and shows it."""
    package = Path(unit.__file__).parents[1]
    assert all((package / name).exists() for name in unit.ENGINE)
    named = {name.removesuffix(".py") for name in unit.ENGINE}
    around = {"record", "errors", "shelf", "stacks"}
    journey = (package / "journey.py").read_text()
    imported = {line.split()[1].split(".")[1] for line in journey.splitlines() if line.startswith("from repros.")}
    assert imported <= named | around
