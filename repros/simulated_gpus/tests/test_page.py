"""The README of sim is correct: its example runs as written, and its settings exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SIM = Path(__file__).absolute().parents[1]
PAGE = (SIM / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def example(sim: Any, tmp_path: Path) -> Any:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(text.strip().splitlines()) <= 10
    (tmp_path / "example.py").write_text(text)
    settings = {name: value for name, value in os.environ.items() if not name.startswith("REPROS_SIM")}
    return subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path, env={**settings, "PYTHONPATH": str(SIM.parents[1])},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_the_example_prints_and_raises_as_its_comments_state(example: Any) -> None:
    printed, raised = re.findall(r"# (?:prints|raises) (.*)", PAGE)
    assert example.stdout.strip() == printed, example.stderr
    assert example.returncode == 1
    error = example.stderr.strip().splitlines()[-1]
    assert error.startswith(raised.rstrip(". "))


@pytest.mark.parametrize("setting", sorted(set(re.findall(r"^\| `(REPROS_\w+)", PAGE, re.MULTILINE))))
def test_a_setting_of_the_page_is_read(setting: str) -> None:
    sources = [*SIM.rglob("*.py"), *SIM.rglob("*.cpp"), *SIM.parent.glob("site/*.py")]
    assert any(f'"{setting}"' in file.read_text(encoding="utf-8") for file in sources)


def test_the_example_runs_on_a_copy_of_the_folder_alone(sim: Any, tmp_path: Path) -> None:
    shutil.copytree(SIM, tmp_path / "lifted", ignore=shutil.ignore_patterns("__pycache__"))
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    alone = text.replace("from repros.simulated_gpus import startup", "from lifted import startup")
    assert alone != text
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_SIM", "PYTHONPATH"))}
    ended = subprocess.run(
        [sys.executable, "-c", alone],
        cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    (printed,) = re.findall(r"# prints (.*)", PAGE)
    assert ended.stdout.strip() == printed, ended.stderr
    assert ended.stderr.strip().splitlines()[-1].startswith("RuntimeError: Expected all tensors")
