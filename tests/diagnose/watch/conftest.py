"""Trainings under the watch: their threads, and the releases that cannot run them."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from tools.measure.foreign_programs.place import version_of
from tools.measure.watch_since import read_since

SINCE = {toy: row for row in read_since() for toy in row.toys}

version_on = functools.cache(version_of)

LIBRARIES = {
    "accelerate": "accelerate",
    "datasets": "datasets",
    "transformers": "transformers.trainer",
}
"""What programs import of libraries, which takes several times as long as all of a toy."""


@pytest.fixture(scope="session")
def library_python(current_python: Path, warm_with: Callable[..., Path]) -> Path:
    """A program in the place of `current_python`, for scripts: the libraries it has are imported once."""
    code = "import sys; from importlib.util import find_spec; print(*filter(find_spec, sys.argv[1:]))"
    command = [str(current_python), "-c", code, *LIBRARIES]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return warm_with(*map(LIBRARIES.__getitem__, found))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """More threads than cores make a small training slower."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def has_what_the_training_needs(request: pytest.FixtureRequest) -> None:
    """Skip a test of a training for which the interpreter's torch or Lightning is too old, with what these lack."""
    of_test = getattr(request.node, "callspec", None)
    row = SINCE.get(re.split(r"\W", of_test.id)[0]) if of_test is not None else None
    if row is not None:
        python: Path = request.getfixturevalue("current_python")
        found = version_on(row.package, python)
        if Version(found.split()[1]) < Version(row.release):
            pytest.skip(f"{found}: {row.reason}")
