"""The lines of CONTRIBUTING.md that install what an author needs work in a fresh environment, with the pip it has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.script_tests import find_files

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_installation_has_all_that_check_s_tests_need(tmp_path: Path) -> None:
    lines = re.findall(r"^\$ python (-m pip install .+)$", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 2
    python = tmp_path / "bin/python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    for line in lines:
        command = f"PIP_NO_COMPILE=1 {python} {line} --quiet"  # compiles what the next line imports, and not all
        subprocess.run(command, shell=True, cwd=ROOT, check=True)  # noqa: S602 - as a reader would
    collect = [str(python), "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *find_files(ROOT)]
    done = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    subprocess.run([python, "-m", "ruff", "--version"], check=True)
