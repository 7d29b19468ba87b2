"""The checkout's tests that concern one script, chosen by their markers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from repros.model import Repro

EACH, ALL = "of_each_script", "of_all_scripts"
"""Markers: a test with a case for each script, named by its slug or id; a test that reads all scripts."""
FILES = (
    "tests/match/test_golden.py",
    "tests/match/test_wild.py",
    "tests/matrix/test_ranges.py",
    "tests/test_catalogue.py",
    "tests/test_readme.py",
)
"""The files with such tests; no other is collected, which takes a quarter of a minute for all."""


@dataclass(frozen=True)
class Ran:
    """What the tests said."""

    passed: bool
    output: str

    @property
    def last_line(self) -> str:
        """Their number, and how many failed."""
        return self.output.strip().rpartition("\n")[2]


def pytest_words(repro: Repro) -> list[str]:
    """Return the arguments with which pytest chooses the tests that concern a script."""
    # A word of -k is found in the names of an item and of its markers.
    return ["-m", f"{EACH} or {ALL}", "-k", f"{repro.slug} or {repro.id.lower()} or {ALL}", *FILES]


def run_tests(repro: Repro, root: Path) -> Ran:
    """Run the tests of a checkout that concern a script; that none was chosen is a failure, too."""
    words = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *pytest_words(repro)]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    return Ran(done.returncode == 0, done.stdout)
