"""Real processes that threads wait for, and their end with the bisection."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from repros.engine.environments.processes import Processes

SLEEP = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"]


def test_a_program_says_what_it_printed_and_how_it_ended() -> None:
    code = "import sys; print(sys.stdin.read() or 'no input'); sys.exit(3)"
    assert Processes().run([sys.executable, "-c", code], seconds=60) == (3, "no input\n")


def test_a_program_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        Processes().run(SLEEP, seconds=0.2)


def test_a_stop_kills_what_other_threads_wait_for_and_gives_no_answer() -> None:
    processes = Processes()
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(processes.run, SLEEP, seconds=600) for _ in range(3)]
        time.sleep(0.2)  # some have begun and some may not have: both must end
        processes.stop()
        for future in waiting:
            with pytest.raises(CancelledError):
                future.result(timeout=60)
    with pytest.raises(CancelledError):
        processes.run(SLEEP, seconds=600)


def test_a_block_is_ended_by_what_it_names_and_only_while_it_runs() -> None:
    processes, ended = Processes(), threading.Event()
    with processes.ended_by(ended.set):
        pass
    processes.stop()
    assert not ended.is_set()

    processes = Processes()
    with pytest.raises(CancelledError), processes.ended_by(ended.set):
        processes.stop()
    assert ended.is_set()
