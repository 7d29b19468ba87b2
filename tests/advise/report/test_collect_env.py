"""The output of `torch.utils.collect_env`, of real and of broken environments."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

from repros.advise.report.collect_env import collect_env


def test_a_real_environment(current_python: Path) -> None:
    text, why_not = collect_env(current_python)
    assert why_not is None
    assert text.startswith("PyTorch version: 2.")
    assert "\nPython version: 3." in text


def interpreter(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


def test_a_hanging_interpreter_is_ended_with_its_children(tmp_path: Path) -> None:
    begun = time.monotonic()
    hanging = interpreter(tmp_path, f"sleep 1234 & echo $! > {tmp_path}/pid; wait")
    text, why_not = collect_env(hanging, timeout=1)
    assert (text, str(why_not).endswith(" 1 s")) == ("", True)
    assert time.monotonic() - begun < 30
    # The system may take a moment to end a killed process.
    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(int((tmp_path / "pid").read_text()))
        if started.status() != psutil.STATUS_ZOMBIE:
            started.wait(20)


def test_an_environment_without_torch(tmp_path: Path) -> None:
    text, why_not = collect_env(interpreter(tmp_path, "echo 'No module named torch' >&2; exit 1"))
    assert (text, "No module named torch" in str(why_not)) == ("", True)
    text, why_not = collect_env(interpreter(tmp_path, "exit 3"))
    assert (text, "3" in str(why_not)) == ("", True)


def test_a_missing_interpreter(tmp_path: Path) -> None:
    text, why_not = collect_env(tmp_path / "nowhere")
    assert (text, "No such file or directory" in str(why_not)) == ("", True)
