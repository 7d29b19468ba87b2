"""The checkout's tests that concern some scripts, selected by markers.

`python -m tools.script_tests ID ...` runs them, as `nox -s unit -- --repro ID` does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.engine.catalogue import load
from repros.model import Repro
from repros.model.errors import ReprosError

EACH, ALL = "of_each_script", "of_all_scripts"
"""Markers: a test with one case per script, named by its slug or id; a test that reads all scripts."""
QUICK = "not torch and not slow"
"""Tests of `nox -s unit`."""


@dataclass(frozen=True)
class SuiteResult:
    """The result of the tests."""

    passed: bool
    output: str
    """stdout of pytest, then stderr."""

    @property
    def last_line(self) -> str:
        """The counts of tests and failures, or why pytest did not start."""
        return self.output.strip().rpartition("\n")[2].removeprefix("E ").strip()


def find_files(root: Path) -> list[str]:
    """Return the test files with a marked test, relative to the root; collecting all files takes 15 s."""
    marked = re.compile(rf"pytest\.mark\.({EACH}|{ALL})\b")
    files = sorted(file for file in root.glob("tests/**/test_*.py") if marked.search(file.read_text("utf-8")))
    return [file.relative_to(root).as_posix() for file in files]


def pytest_words(repros: Sequence[Repro], root: Path) -> list[str]:
    """Return pytest's arguments that select the tests of some scripts."""
    # -k searches the names of an item and of its markers.
    names = [name for repro in repros for name in (repro.slug, repro.id.lower())]
    return ["-m", f"({EACH} or {ALL}) and {QUICK}", "-k", " or ".join([*names, ALL]), *find_files(root)]


def run_tests(repros: Sequence[Repro], root: Path) -> SuiteResult:
    """Run the tests of a checkout that concern some scripts; selecting none is a failure."""
    words = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *pytest_words(repros, root)]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    return SuiteResult(done.returncode == 0, done.stdout + done.stderr)


def main(names: Sequence[str]) -> None:
    """Run the tests of the scripts with these ids or slugs, in the checkout that is the working directory."""
    try:
        catalogue = load()
        ran = run_tests([catalogue.find(name) for name in names] or list(catalogue), Path())
    except ReprosError as error:
        sys.exit(str(error))
    sys.stdout.write(ran.output)
    sys.exit(not ran.passed)


if __name__ == "__main__":
    main(sys.argv[1:])
