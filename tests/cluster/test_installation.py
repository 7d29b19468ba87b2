"""What the driver and a node must have in common."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import repros
from repros.cluster.installation import digest_of, this_installation


def test_the_same_installation_does_not_differ() -> None:
    assert this_installation().difference_from(this_installation()) is None


def test_what_differs_is_named() -> None:
    own = this_installation()
    assert own.difference_from(replace(own, python="3.9")) == f"Python 3.9 and not {own.python}"
    assert own.difference_from(replace(own, version="0.0.1")) == f"repros 0.0.1 and not {own.version}"
    assert own.difference_from(replace(own, sources="x")) == f"another repros {own.version}, with other files"


def test_any_file_that_a_cell_depends_on_counts(tmp_path: Path) -> None:
    package, copy = Path(repros.__file__).parent, tmp_path / "repros"
    left_out = shutil.ignore_patterns("evidence", "site", "tests", "tools", "__pycache__")
    shutil.copytree(package, copy, ignore=left_out)
    before = digest_of(package)
    assert digest_of(copy) == before
    (copy / "docs").mkdir(exist_ok=True)
    (copy / "docs" / "new.py").touch()
    assert digest_of(copy) == before
    (copy / "engine" / "new.py").touch()
    assert digest_of(copy) != before
