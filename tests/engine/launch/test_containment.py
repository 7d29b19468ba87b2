"""No process of a cell outlives it, and no other process is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from repros.engine.launch import containment

SLEEP = "import time; print('here', flush=True); time.sleep(600)"
DEAF = "import signal; signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN); " + SLEEP
SPAWNS_AT_ITS_END = f"""
import subprocess, sys, time
print('here', flush=True)
try:
    time.sleep(600)
finally:
    subprocess.Popen([sys.executable, "-c", {DEAF!r}], start_new_session=True)
"""


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return tmp_path / "cell"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def start(started: list[subprocess.Popen[bytes]], script: str, token: Path | None) -> subprocess.Popen[bytes]:
    environ = dict(os.environ) if token is None else {**os.environ, "REPROS_CELL": str(token)}
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE, start_new_session=True
    )
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    return process


def alive(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def test_a_process_is_found_by_its_session_or_by_its_token(token: Path, started: list[subprocess.Popen[bytes]]) -> None:
    of_session = start(started, SLEEP, None)
    of_token = start(started, SLEEP, token)
    neither = start(started, SLEEP, token.with_name("another"))
    found = {process.pid for process in containment.members(token, of_session.pid)}
    assert found == {of_session.pid, of_token.pid}
    assert containment.end(token, of_session.pid) == 2
    assert not alive(of_session)
    assert not alive(of_token)
    assert alive(neither)


@pytest.mark.slow
def test_a_process_that_obeys_a_signal_is_not_killed_and_a_deaf_one_is(
    token: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    token.mkdir()
    obeys = f"try:\n    {SLEEP}\nexcept KeyboardInterrupt:\n    open({str(token / 'obeyed')!r}, 'w').close()"
    obedient, deaf = start(started, obeys, token), start(started, DEAF, token)
    assert containment.end(token, -1) == 2
    assert (token / "obeyed").exists()
    assert not alive(obedient)
    assert not alive(deaf)


@pytest.mark.slow
def test_a_process_that_is_started_by_an_ending_one_is_ended_too(
    token: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    start(started, SPAWNS_AT_ITS_END, token)
    assert containment.end(token, -1) >= 1
    assert containment.members(token, -1) == []


def test_without_processes_none_is_ended(token: Path) -> None:
    assert containment.end(token, -1) == 0


def test_signalling_a_process_that_is_gone_is_not_an_error(started: list[subprocess.Popen[bytes]], token: Path) -> None:
    process = start(started, SLEEP, token)
    known = psutil.Process(process.pid)
    process.kill()
    process.wait()
    containment.signal_all([known], 15)


KEEPS_A_ZOMBIE = f"""
import os, subprocess, sys, time
environ = {{**os.environ, "REPROS_CELL": sys.argv[1]}}
subprocess.Popen([sys.executable, "-c", {DEAF!r}], env=environ, start_new_session=True)
time.sleep(600)
"""


def test_a_zombie_that_its_parent_leaves_is_not_waited_for(token: Path, started: list[subprocess.Popen[bytes]]) -> None:
    parent = subprocess.Popen([sys.executable, "-c", KEEPS_A_ZOMBIE, str(token)], stdout=subprocess.PIPE)
    started.append(parent)
    assert parent.stdout is not None
    parent.stdout.readline()
    # It ignores SIGINT; a wait for the zombie that SIGKILL leaves would take longer than a test may.
    assert containment.end(token, -1, [(signal.SIGINT, 0.1), (signal.SIGKILL, 600)]) == 1
    assert containment.members(token, -1) == []
