"""A real torch that finds too little memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("launch", ["cold", "warm"])
def test_no_memory_for_torch_is_a_failure_of_the_machine(launch: str, current_python: Path, tmp_path: Path) -> None:
    words = ("run", "RPR-0011", "--variant", "failing", "--device", "cpu", "--launch", launch, "--python")
    limited = f"ulimit -v 300000; exec {sys.executable} -m repros {' '.join(words)} {current_python}"
    done = subprocess.run(
        ["bash", "-c", limited], env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "] infra       RPR-0011 failing auto cpu " in done.stdout
    assert "met a failure of the machine: ImportError: " in " ".join(done.stdout.split())
