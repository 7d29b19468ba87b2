"""The surroundings of cells on a node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESTORE = """\
import json, os
from repros.cluster.worker_environment import restore_environment
restore_environment()
print(json.dumps(%s))
"""


def restored(asked: str, **variables: str) -> str:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(
        [sys.executable, "-c", RESTORE % asked], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_worker_gets_the_variables_of_its_raylet_without_those_of_ray() -> None:
    raylet = subprocess.Popen(
        ["sleep", "60"], env={"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": "3", "OWN": "a=b", "RAY_X": "1"}
    )
    try:
        own = {"RAY_RAYLET_PID": str(raylet.pid), "RAY_JOB_ID": "1", "CUDA_VISIBLE_DEVICES": "", "SPT_NOENV": "1"}
        asked = "{k: v for k, v in os.environ.items() if k not in ('PATH', 'LC_CTYPE')}"
        assert restored(asked, **own) == '{"CUDA_VISIBLE_DEVICES": "3", "OWN": "a=b"}'
    finally:
        raylet.kill()
        raylet.wait()


def test_without_a_raylet_only_what_ray_sets_is_left_out() -> None:
    own = {"RAY_RAYLET_PID": "", "PYTHONBREAKPOINT": "ray.util.rpdb.set_trace", "OMP_NUM_THREADS": "1", "OWN": "1"}
    asked = "sorted(set(os.environ) - {'PATH', 'LC_CTYPE'})"
    assert restored(asked, **own) == '["OWN", "PYTHONPATH"]'


@pytest.mark.parametrize("restored", [False, True])
def test_a_cell_starts_as_by_hand(restored: bool) -> None:
    """A worker of Ray blocks SIGINT, and has a lower priority than its raylet."""
    raylet = subprocess.Popen(["sleep", "60"])
    code = (
        "import os, signal, subprocess, sys, threading\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "os.nice(15)\n"
        "from repros.cluster.worker_environment import receive_interrupts, restore_priority\n"
        "begun = threading.Event()\n"
        "def run():\n"
        "    begun.wait()\n"
        "    if sys.argv[1:]: receive_interrupts()\n"
        "    cell = subprocess.Popen(['sleep', '2'])\n"
        "    print(os.getpriority(os.PRIO_PROCESS, cell.pid), end=' ')\n"
        "    cell.send_signal(signal.SIGINT)\n"
        "    print(-cell.wait())\n"
        "thread = threading.Thread(target=run)\n"
        "thread.start()\n"
        "if sys.argv[1:]: restore_priority()\n"
        "begun.set()\n"
        "thread.join()\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_RAYLET_PID": str(raylet.pid)}
    try:
        command = [sys.executable, "-c", code, *(["restored"] if restored else [])]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        own = os.getpriority(os.PRIO_PROCESS, 0)
    finally:
        raylet.kill()
        raylet.wait()
    may_raise = os.geteuid() == 0
    expected = (own if may_raise else own + 15, int(signal.SIGINT)) if restored else (own + 15, 0)
    assert tuple(map(int, done.stdout.split())) == expected
