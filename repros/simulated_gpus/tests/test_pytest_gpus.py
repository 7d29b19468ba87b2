"""`pytest -p repros.simulate.pytest_gpus --gpus N`: a project's own tests that need GPUs, in a real pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.one_release, pytest.mark.usefixtures("sim")]

CONFTEST = """
import torch
COUNT = torch.cuda.device_count()  # as a conftest would that skips tests without a GPU
"""
TESTS = """
import subprocess, sys, pytest, torch
from conftest import COUNT

@pytest.mark.skipif(COUNT < 3, reason="needs three GPUs")
def test_devices_differ():
    layer = torch.nn.Linear(4, 2).to("cuda:2")
    with pytest.raises(RuntimeError, match="cuda:1"):
        layer(torch.ones(1, 4, device="cuda:1"))
    assert torch.cuda.get_device_name(2) == "Simulated CUDA device"

def test_a_process_has_the_same_devices():
    script = "import torch; print(torch.cuda.device_count())"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == f"{COUNT}\\n"
"""


@pytest.fixture
def project(tmp_path: Path, root: Path) -> Any:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # or pytest takes the project around the folder for its own
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_gpus.py").write_text(TESTS)

    def run(*options: str, before: str = "pass") -> subprocess.CompletedProcess[str]:
        """Run pytest in a process without simulated GPUs."""
        places = [folder for folder in os.environ["PYTHONPATH"].split(os.pathsep) if not folder.endswith("inside/site")]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_SIM", "PYTEST"))}
        script = f"import sys; {before}; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
        return subprocess.run(
            [sys.executable, "-c", script, "-p", "no:cacheprovider", "-p", "repros.simulate.pytest_gpus", *options],
            cwd=tmp_path, env={**kept, "PYTHONPATH": os.pathsep.join([*places, str(root)])},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    return run


def test_tests_that_need_gpus_run(project: Any) -> None:
    ended = project("--gpus", "3")
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "simulated GPUs instead of cuda: 3 (host memory)" in ended.stdout


def test_without_the_option_there_are_none(project: Any) -> None:
    ended = project("-q")
    assert "1 passed, 1 skipped" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("number", "before", "sentence"),
    [
        ("0", "pass", "ERROR: --gpus 0: expected a number from 1 to 64."),
        (
            "2",
            "import torch",
            "torch is already imported; simulated GPUs must be set up before it is; alternative: repros",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(project: Any, number: str, before: str, sentence: str) -> None:
    ended = project("--gpus", number, before=before)
    assert (ended.returncode, "Traceback" in ended.stderr) == (4, False), ended.stderr
    assert sentence in ended.stderr
