"""The stacks of a run, prepared at once: shown by the order of events, with real environments of a tiny stack."""

from __future__ import annotations

import datetime as dt
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine import catalogue, environments
from repros.engine.environment import Targets
from repros.engine.pipeline import run_specs
from repros.engine.plan import CellSpec, Selection, select
from repros.engine.run_options import Observer, RunOptions
from repros.model import Cell, Device, Stack, Unavailable, Verdict
from repros.model.stack import Size
from tests.engine.matrix.test_measure import TORCH
from tests.tiny_stack import write_wheel
from tests.toy_cells import TOYS

pytestmark = pytest.mark.slow

TIMEOUT = 120
ON_CPU = select(catalogue.load([TOYS / "raises.py"]), Selection(variants=("fixed",), devices=(Device.CPU,)))
SPECS = [replace(spec, device=device) for spec in ON_CPU for device in (Device.CPU, Device.SIM)]
NAMES = ("one", "two", "three")


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Stack]:
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    write_wheel(tmp_path, "torch", TORCH)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    made = {}
    for name in NAMES:
        lock = tmp_path / f"{name}.lock.txt"
        lock.write_text(f"--no-index\n--find-links {tmp_path}\ntorch==1.0\n")
        made[name] = Stack(name, "for tests", python, (), dt.date(2026, 1, 1), lock, Size(2, 2))
    return made


class Waiting(Observer):
    """Notes what happens, and holds up each line of progress that begins with one of these until it is released."""

    def __init__(self, *held: str) -> None:
        self.calls: list[str] = []
        self.reached = {line: threading.Event() for line in held}
        self.released = threading.Event()

    def planned(self, cells: Sequence[Cell | Unavailable]) -> None:
        self.calls.append(f"{sum(isinstance(item, Cell) for item in cells)} of {len(cells)} planned")

    def awaited(self, stacks: Sequence[str]) -> None:
        self.calls.append(f"awaits {', '.join(stacks)}")

    def report_progress(self, line: str) -> None:
        for held, reached in self.reached.items():
            if line.startswith(held):
                reached.set()
                assert self.released.wait(TIMEOUT), f"nothing else happened while: {line}"


def run(
    stacks: dict[str, Stack], out: Path, observer: Observer, options: RunOptions, specs: Sequence[CellSpec] = SPECS
) -> list[tuple[str, Device, Verdict]]:
    results = run_specs(specs, Targets(NAMES, known=stacks), out, observer, options)
    ended = []
    for result in results:
        ended.append((result.cell.environment.name, result.cell.device, result.verdict))
        if isinstance(observer, Waiting) and ended[-1][:2] == ("two", Device.CPU):
            # A cell of `two` has ended. The others must be in the middle of their preparation.
            assert [line for line, reached in observer.reached.items() if not reached.wait(TIMEOUT)] == []
            observer.released.set()
    return ended


def test_one_stack_is_installed_another_compiled_while_cells_of_a_third_run(
    stacks: dict[str, Stack], tmp_path: Path
) -> None:
    observer = Waiting("looking at one", "making the environment of stack three")
    ended = run(stacks, tmp_path / "results.jsonl", observer, RunOptions())
    assert [(name, device) for name, device, _ in ended[:2]] == [("one", Device.CPU), ("two", Device.CPU)]
    assert sorted(ended) == sorted(
        (name, device, verdict)
        for name in NAMES
        for device, verdict in ((Device.CPU, Verdict.CLEAN), (Device.SIM, Verdict.UNAVAILABLE))
    )
    assert observer.calls == [
        "6 of 6 planned",
        "awaits one, two, three",
        "awaits two, three",
        "awaits three",
        "awaits ",
    ]


def test_a_stack_that_cannot_be_made_is_tried_once_and_costs_its_own_cells(
    stacks: dict[str, Stack], tmp_path: Path
) -> None:
    lock = stacks["two"].lock
    lock.write_text(f"{lock.read_text()}not-there==1.0\n")
    ended = run(stacks, tmp_path / "results.jsonl", Observer(), RunOptions())
    assert [verdict for name, _, verdict in ended if name == "two"] == [Verdict.UNAVAILABLE] * 2
    assert [verdict for _, device, verdict in ended if device is Device.CPU and verdict is Verdict.CLEAN] == (
        [Verdict.CLEAN] * 2
    )


def test_one_job_follows_the_plan_with_all_stacks_prepared(stacks: dict[str, Stack], tmp_path: Path) -> None:
    ended = run(stacks, tmp_path / "results.jsonl", Observer(), RunOptions(jobs=1), ON_CPU)
    assert ended == [(name, Device.CPU, Verdict.CLEAN) for name in NAMES]


def test_an_interrupt_ends_the_preparation_and_keeps_what_is_complete(stacks: dict[str, Stack], tmp_path: Path) -> None:
    observer = Waiting("making the environment of stack two")
    results = run_specs(ON_CPU, Targets(NAMES, known=stacks), tmp_path / "results.jsonl", observer, RunOptions())
    assert next(results).cell.environment.name == "one"
    assert observer.reached["making the environment of stack two"].wait(TIMEOUT)
    threading.Timer(0.5, observer.released.set).start()
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt())
    assert [environments.ready(stack) for stack in stacks.values()] == [True, False, False]
