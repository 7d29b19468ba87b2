"""The generators of parts of pages answer `--help` and say what they did."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATORS = sorted({name for page in PAGES for name in re.findall(r"begin \(python -m ([\w.]+)\)", page.read_text())})


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_there_are_several() -> None:
    assert {"tools.docs.readme", "tools.measure.watch_table"} <= set(GENERATORS)


@pytest.mark.slow
@pytest.mark.parametrize("generator", GENERATORS)
def test_help_writes_nothing(generator: str) -> None:
    before = {page: page.stat().st_mtime_ns for page in PAGES}
    assert run(generator, "--help").startswith(f"usage: python -m {generator} [-h]")
    assert before == {page: page.stat().st_mtime_ns for page in PAGES}


def test_a_page_that_is_as_it_should_be_is_left_alone() -> None:
    assert run("tools.docs.readme") == "nothing to change\n"
