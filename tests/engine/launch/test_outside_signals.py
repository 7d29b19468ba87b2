"""Real signals from outside to one process of a running cell: the cell is never judged by how that process ended."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.engine.launch import Servers
from repros.model import Verdict
from tests.chaos.witnesses import Witnesses
from tests.chaos.worker import RunningCell, Trial, Worker, run_trial

SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL"]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("cells")
    with Servers(folder / "servers") as servers:
        yield Worker(folder, servers, Witnesses(folder / "witnesses"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the targets are found by /proc")
@pytest.mark.parametrize("variant", ["failing", "fixed", "hangs"])
@pytest.mark.parametrize("target", ["warm rank", "warm leader", "cold main process"])
def test_a_process_that_somebody_else_ends_is_infra(worker: Worker, target: str, variant: str) -> None:
    for name in SIGNALS:

        def strike(running: RunningCell, _: random.Random, number: int = signal.Signals[name]) -> None:
            os.kill(running.ranks[1] if target == "warm rank" else running.leader, number)

        trial = Trial(
            "gate", strike, frozenset({Verdict.INFRA}), (variant,), warm=target.startswith("warm"), deadline=10
        )
        run_trial(worker, random.Random(name), trial)  # noqa: S311 - has to be repeatable
    assert any("outside (SIGTERM)" in reason for reason in worker.reasons)
