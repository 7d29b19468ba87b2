"""Trainings that the interpreter's releases cannot run are skipped, with what these lack."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from packaging.version import Version

from tests.tools.foreign_programs.place import version_of
from tests.tools.watch_since import read_since

SINCE = {toy: row for row in read_since() for toy in row.toys}

version_on = functools.cache(version_of)


@pytest.fixture(autouse=True)
def has_what_the_training_needs(request: pytest.FixtureRequest) -> None:
    """Skip a test of a training for which the interpreter's torch or Lightning is too old."""
    of_test = getattr(request.node, "callspec", None)
    row = SINCE.get(re.split(r"\W", of_test.id)[0]) if of_test is not None else None
    if row is not None:
        python: Path = request.getfixturevalue("current_python")
        found = version_on(row.package, python)
        if Version(found.split()[1]) < Version(row.release):
            pytest.skip(f"{found}: {row.reason}")
