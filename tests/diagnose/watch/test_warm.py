"""The warm interpreter exits and reports as the cold one does, and keeps nothing of a script for the next."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from repros.simulated_gpus.tests import warm_python as warm

pytestmark = pytest.mark.slow

PROGRAMS = {
    "code": "import sys, torch; print(torch.ones(2).sum().item()); sys.exit(7)",
    "signal": "import os, torch; os.kill(os.getpid(), 9)",
    "arguments": "import os, sys; print(sys.argv, os.getcwd(), os.environ['SEEN'], sys.stdin.read())",
    "at the end": "import atexit, threading, time; atexit.register(print, 'end');"
    " threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start(); print('main', end=' ')",
    "variable": "import os, sys; print(os.environ.get('LEFT')); os.environ['LEFT'] = sys.path[0]",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_ends_as_in_an_interpreter_of_its_own(
    name: str, warm_python: Path, current_python: Path, tmp_path: Path
) -> None:
    environ = {**os.environ, "SEEN": "yes"}
    cold, warm, again = (
        subprocess.run(
            [python, "-c", PROGRAMS[name], "one", "two"], cwd=tmp_path, env=environ, input="typed",
            capture_output=True, text=True, timeout=120, check=False,
        )
        for python in (current_python, warm_python, warm_python)
    )  # fmt: skip
    assert (warm.returncode, warm.stdout) == (cold.returncode, cold.stdout), warm.stderr
    assert (again.returncode, again.stdout) == (cold.returncode, cold.stdout)


def test_a_script_ends_with_the_test_that_gave_it_up(warm_python: Path, tmp_path: Path) -> None:
    program = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(300)"
    client = subprocess.Popen([warm_python, "-c", program], cwd=tmp_path)
    file = tmp_path / "pid"
    deadline = time.monotonic() + 60
    while not (file.is_file() and file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    client.send_signal(signal.SIGKILL)
    client.wait()
    done = subprocess.run([warm_python, "-c", "print(1)"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1\n"  # the server is free again
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


def test_it_ends_though_a_process_that_a_test_forked_is_there_yet(tmp_path: Path) -> None:
    """As the workers that torch 2.0's Inductor forks when it is imported."""
    forked = multiprocessing.get_context("fork").Process(target=signal.pause)
    with warm.warm_python(Path(sys.executable), tmp_path, os.environ):
        forked.start()
    forked.kill()
    forked.join()
