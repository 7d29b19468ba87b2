"""torch's own description of an environment: of a real one, and of some that give none."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

from repros.issue.torch_env import collect


def test_a_real_environment(current_python: Path) -> None:
    text, why_not = collect(current_python)
    assert why_not is None
    assert text.startswith("PyTorch version: 2.")
    assert "\nPython version: 3." in text


def interpreter(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


def test_one_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    begun = time.monotonic()
    hanging = interpreter(tmp_path, f"sleep 1234 & echo $! > {tmp_path}/pid; wait")
    assert collect(hanging, patience=1) == ("", "it did not answer within 1 s")
    assert time.monotonic() - begun < 30
    # Killed it is, but the system may take a moment over it.
    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(int((tmp_path / "pid").read_text()))
        if started.status() != psutil.STATUS_ZOMBIE:
            started.wait(20)


def test_one_without_torch(tmp_path: Path) -> None:
    assert collect(interpreter(tmp_path, "echo 'No module named torch' >&2; exit 1")) == (
        "",
        "it failed (No module named torch)",
    )
    assert collect(interpreter(tmp_path, "exit 3")) == ("", "it failed (exit code 3)")


def test_one_that_is_none(tmp_path: Path) -> None:
    assert collect(tmp_path / "nowhere") == ("", "the interpreter cannot be run (No such file or directory)")
