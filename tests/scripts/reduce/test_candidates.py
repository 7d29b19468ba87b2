"""What a candidate leaves behind for the next one: nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.model import Device, Environment
from repros.scripts.reduce.candidates import CandidateRunner
from repros.scripts.try_.outcome import Status
from repros.scripts.try_.sandbox import Limits, find_sandbox
from repros.scripts.try_.script import Script
from repros.scripts.try_.task import Task, TaskOptions

SANDBOX = find_sandbox(network=False)
LEAVES_STATE = """
import os, tempfile
from pathlib import Path
for folder in (Path.home(), Path(tempfile.gettempdir()), Path(os.environ["HOME"]).parent):
    state = folder / "state"
    print(state)
    if state.exists():
        raise ValueError(f"{state} was left by another run")
    try:
        state.touch()
    except OSError:
        assert folder == Path(os.environ["HOME"]).parent, "its own folders can be changed"
"""


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[CandidateRunner]:
    limits = Limits(60.0, 2**32, 2**20)
    task = Task(Script("state.py", "", "state.py"), (), TaskOptions(), limits, SANDBOX)
    environment = Environment("here", Path(sys.executable), "3.11.9", {}, {Device.CPU: 2})
    with CandidateRunner(task, environment, tmp_path) as opened:
        yield opened


@pytest.mark.skipif(not SANDBOX.system, reason="this system lets nobody make a mount namespace")
@pytest.mark.parametrize("is_warm", [True, False])
def test_each_candidate_has_a_home_of_its_own(is_warm: bool, runner: CandidateRunner) -> None:
    outcomes = [runner.run(LEAVES_STATE, 1, warm=is_warm)[1] for _ in range(2)]
    assert [(outcome.status, outcome.chain) for outcome in outcomes] == [(Status.CLEAN, ())] * 2
    homes = {outcome.last_lines[0] for outcome in outcomes}
    assert len(homes) == (1 if is_warm else 2)  # the name is the server's, which the libraries have looked up
    assert not any(os.path.lexists(home) for home in homes)
