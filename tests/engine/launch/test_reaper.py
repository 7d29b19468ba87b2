"""A reaper ends the processes that its runner left, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
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
    """Start a process without a token, in its own session."""
    yield from start({})


@pytest.fixture
def with_token(of_runner: Reaper) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with the runner's token, in a session that the reaper does not know."""
    yield from start({reaper.VARIABLE: of_runner.token})


def start(environ: dict[str, str]) -> Generator[subprocess.Popen[bytes], None, None]:
    command = [sys.executable, "-c", SLEEP]
    kept = {name: value for name, value in os.environ.items() if name != reaper.VARIABLE}
    with subprocess.Popen(command, env=kept | environ, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        try:
            yield process
        finally:
            process.kill()


def ignored(pid: int) -> list[int]:
    """Return the signals that a process ignores."""
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    mask = int(text.partition("SigIgn:")[2].split()[0], 16)
    return [number for number in range(1, 65) if mask >> number - 1 & 1]


def hang_up(of_runner: Reaper) -> None:
    """Close the pipe as the runner's death does."""
    assert of_runner._process is not None
    assert of_runner._process.stdin is not None
    of_runner._process.stdin.close()
    of_runner._process.wait(60)


def test_processes_with_the_token_or_in_a_known_session_end_and_no_others(
    of_runner: Reaper, with_token: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    starts = start({}), start({})
    in_session, foreign = map(next, starts)
    (workdir := tmp_path / "workdir").mkdir()
    of_runner.add_run(workdir)
    of_runner.add_run(workdir, in_session.pid)
    hang_up(of_runner)
    assert with_token.wait(60) == -signal.SIGKILL
    assert in_session.wait(60) == -signal.SIGKILL
    assert foreign.poll() is None
    assert not workdir.exists()
    for started in starts:
        started.close()


def test_a_removed_cell_is_left_alone(of_runner: Reaper, sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (workdir := tmp_path / "workdir").mkdir()
    of_runner.add_run(workdir, sleeper.pid)
    of_runner.remove_run(workdir)
    hang_up(of_runner)
    assert sleeper.poll() is None
    assert workdir.exists()


def test_a_killed_reaper_is_replaced_and_gets_all_cells_again(
    of_runner: Reaper, sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    of_runner.add_run(tmp_path / "one", sleeper.pid)
    assert of_runner.pid is not None
    os.kill(of_runner.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(of_runner.pid)], timeout=60)
    of_runner.remove_run(tmp_path / "another")
    of_runner.add_run(tmp_path / "two")
    hang_up(of_runner)
    assert sleeper.wait(60) == -signal.SIGKILL


def test_signals_of_a_terminal_do_not_end_the_reaper(of_runner: Reaper, tmp_path: Path) -> None:
    of_runner.add_run(tmp_path / "one")
    assert of_runner.pid is not None
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    while any(number not in ignored(of_runner.pid) for number in numbers):
        time.sleep(0.01)
    for number in numbers:
        os.kill(of_runner.pid, number)
    time.sleep(0.2)
    assert of_runner._process is not None
    assert of_runner._process.poll() is None


def test_a_fork_of_the_runner_does_not_keep_the_pipe_open(
    of_runner: Reaper, with_token: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    of_runner.add_run(tmp_path / "one")
    pid = os.fork()
    if pid == 0:
        of_runner.reset_after_fork()
        time.sleep(30)
        os._exit(0)
    hang_up(of_runner)
    assert with_token.wait(60) == -signal.SIGKILL
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_stopped_reaper_holds_up_no_runner(of_runner: Reaper, tmp_path: Path) -> None:
    of_runner.add_run(tmp_path)
    assert of_runner.pid is not None
    os.kill(of_runner.pid, signal.SIGSTOP)

    def run_many_cells() -> None:
        for number in range(4000):  # more than a pipe holds
            of_runner.add_run(tmp_path / str(number))
            of_runner.remove_run(tmp_path / str(number))

    thread = threading.Thread(target=run_many_cells, daemon=True)
    thread.start()
    thread.join(30)
    os.kill(of_runner.pid, signal.SIGCONT)
    assert not thread.is_alive()
