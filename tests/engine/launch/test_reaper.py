"""A reaper ends what its runner left, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest

from repros.engine.launch import reaper
from repros.engine.launch.reaper import Reaper

SLEEP = "import time; print('here', flush=True); time.sleep(600)"


@pytest.fixture
def of_runner() -> Iterator[Reaper]:
    made = Reaper()
    yield made
    made.close()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of no runner, in a session of its own."""
    yield from start({})


@pytest.fixture
def bearer(of_runner: Reaper) -> Iterator[subprocess.Popen[bytes]]:
    """A process that matches the runner's token, in a session that nobody told."""
    yield from start({reaper.VARIABLE: of_runner.token})


def start(environ: dict[str, str]) -> Generator[subprocess.Popen[bytes], None, None]:
    command = [sys.executable, "-c", SLEEP]
    kept = {name: value for name, value in os.environ.items() if name != reaper.VARIABLE}
    with subprocess.Popen(command, env=kept | environ, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        yield process
        process.kill()


def hang_up(of_runner: Reaper) -> None:
    """Close the pipe as the runner's death does."""
    assert of_runner._process is not None
    assert of_runner._process.stdin is not None
    of_runner._process.stdin.close()
    of_runner._process.wait(10)


def test_what_bears_the_token_and_what_is_in_a_told_session_ends_and_no_other(
    of_runner: Reaper, bearer: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    told, stranger = start({}), start({})
    wiped, foreign = next(told), next(stranger)
    (workdir := tmp_path / "workdir").mkdir()
    of_runner.add_cell(workdir)
    of_runner.add_cell(workdir, wiped.pid)
    hang_up(of_runner)
    assert bearer.wait(10) == -signal.SIGKILL
    assert wiped.wait(10) == -signal.SIGKILL
    assert foreign.poll() is None
    assert not workdir.exists()
    told.close()
    foreign.kill()
    stranger.close()


def test_a_cell_that_is_over_is_let_go(of_runner: Reaper, sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (workdir := tmp_path / "workdir").mkdir()
    of_runner.add_cell(workdir, sleeper.pid)
    of_runner.remove_cell(workdir)
    hang_up(of_runner)
    assert sleeper.poll() is None
    assert workdir.exists()


def test_a_keeper_that_was_killed_is_replaced_and_told_again(
    of_runner: Reaper, sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    of_runner.add_cell(tmp_path / "one", sleeper.pid)
    assert of_runner.pid is not None
    os.kill(of_runner.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(of_runner.pid)], timeout=10)
    of_runner.remove_cell(tmp_path / "another")
    of_runner.add_cell(tmp_path / "two")
    hang_up(of_runner)
    assert sleeper.wait(10) == -signal.SIGKILL


def test_signals_that_end_a_terminals_jobs_do_not_end_it(of_runner: Reaper, tmp_path: Path) -> None:
    of_runner.add_cell(tmp_path / "one")
    assert of_runner.pid is not None
    time.sleep(0.5)  # until it has said that it ignores them
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(of_runner.pid, number)
    time.sleep(0.2)
    assert of_runner._process is not None
    assert of_runner._process.poll() is None


def test_a_fork_of_the_runner_keeps_no_pipe_open(
    of_runner: Reaper, bearer: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    of_runner.add_cell(tmp_path / "one")
    pid = os.fork()
    if pid == 0:
        of_runner.reset_after_fork()
        time.sleep(30)
        os._exit(0)
    hang_up(of_runner)
    assert bearer.wait(10) == -signal.SIGKILL
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
