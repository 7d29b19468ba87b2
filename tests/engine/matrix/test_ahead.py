"""The environment of the next stack: made while cells run, one ahead, dropped, and ended with an interrupted run."""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from repros.engine import catalogue, environments
from repros.engine.matrix.ahead import EnvironmentAhead
from repros.engine.matrix.measure import measure
from repros.engine.matrix.worklist import build_worklist
from repros.engine.plan import Selection, select
from repros.engine.run_options import Observer, RunOptions
from repros.model import CellResult, Stack, Verdict
from repros.model.stack import Size
from tests.engine.matrix.test_measure import TORCH
from tests.tiny_stack import write_wheel
from tests.toy_cells import TOYS

SPECS = select(catalogue.load([TOYS / "raises.py"]), Selection(variants=("failing", "fixed")))


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Stack]:
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    write_wheel(tmp_path, "torch", TORCH)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    made = []
    for name in ("one", "two", "three"):
        lock = tmp_path / f"{name}.lock.txt"
        lock.write_text(f"--no-index\n--find-links {tmp_path}\ntorch==1.0\n")
        made.append(Stack(name, "for tests", python, (), dt.date(2026, 1, 1), lock, Size(2, 2)))
    return made


def run(stacks: list[Stack], tmp_path: Path, *, keep: bool = False) -> Iterator[CellResult]:
    worklist = build_worklist(SPECS, stacks, {})
    out = tmp_path / "matrix.jsonl"
    return measure(worklist, out, Observer(), lambda _: None, options=RunOptions(jobs=1, keep_environments=keep))


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_one_environment_is_made_while_cells_of_another_stack_run(stacks: list[Stack], tmp_path: Path) -> None:
    results = run(stacks, tmp_path)
    first = next(results)
    assert first.cell.environment.name == "one"
    wait_until(lambda: environments.ready(stacks[1]))
    time.sleep(0.5)
    assert not environments.environment_folder(stacks[2]).exists(), "one ahead, and no more"
    rest = list(results)
    assert [result.cell.environment.name for result in rest] == ["one", "two", "two", "three", "three"]
    assert {result.verdict for result in (first, *rest)} == {Verdict.REPRODUCED, Verdict.CLEAN}
    assert not any(environments.environment_folder(stack).exists() for stack in stacks)


@pytest.mark.parametrize("keep", [False, True])
def test_an_interrupted_run_drops_what_was_made_ahead_unless_it_is_to_be_kept(
    stacks: list[Stack], tmp_path: Path, *, keep: bool
) -> None:
    results = run(stacks, tmp_path, keep=keep)
    next(results)
    wait_until(lambda: environments.ready(stacks[1]))
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt())  # type: ignore[attr-defined]
    assert [environments.ready(stack) for stack in stacks] == [keep, keep, False]


def test_what_cannot_be_made_ahead_costs_its_own_cells_alone(stacks: list[Stack], tmp_path: Path) -> None:
    stacks[1].lock.write_text(f"--no-index\n--find-links {tmp_path}\ntorch==1.0\nnot-there==1.0\n")
    results = list(run(stacks, tmp_path))
    verdicts = [(result.cell.environment.name, result.verdict) for result in results]
    assert verdicts[2:4] == [("two", Verdict.UNAVAILABLE)] * 2
    assert {verdict for _, verdict in verdicts[:2] + verdicts[4:]} == {Verdict.REPRODUCED, Verdict.CLEAN}


def test_an_interrupted_run_leaves_what_it_has_not_made(stacks: list[Stack], tmp_path: Path) -> None:
    list(run(stacks[2:], tmp_path, keep=True))
    results = run(stacks, tmp_path)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert [environments.ready(stack) for stack in stacks] == [False, False, True]


def test_an_interrupt_ends_the_installer_that_another_thread_waits_for(
    stacks: list[Stack], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin/uv"
    slow.parent.mkdir()
    started = tmp_path / "started"
    slow.write_text(f"#!/bin/sh\necho $$ > {started}\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(slow))
    ahead = EnvironmentAhead(stacks[0], SPECS, lambda _: None, keep=False)
    ahead.start()
    wait_until(lambda: started.exists() and started.read_text().endswith("\n"))
    installer = int(started.read_text())
    ahead.close()  # the installer sleeps for longer than a test may take
    assert not psutil.pid_exists(installer)
    assert not environments.environment_folder(stacks[0]).exists()
    assert f"environment of {stacks[0].name}" not in {thread.name for thread in threading.enumerate()}
