"""What `repros check` calls done is done: a new script, filled in and checked in a clone, passes what reads scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from repros.engine import header
from tests.authoring.checkouts import explain_watch, make_checkout, run, write_entry
from tools.script_tests import find_files

WITHOUT_TESTS = ("--skip", "Tests of the catalogue")
"""Leaves out what a run of all tests runs, too, and the new script changes little: a minute."""


@pytest.mark.long(keep=1)
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("left_out", [(), WITHOUT_TESTS], ids=["with all tests", "with its tests"])
def test_a_new_script_is_checked_and_nothing_is_left(
    left_out: tuple[str, ...], tmp_path: Path, current_python: Path
) -> None:
    checkout = make_checkout(tmp_path)
    script = write_entry(checkout, "a_sum_is_short", "optimizers", 999999)
    script.write_text(script.read_text("utf-8").replace("import sys\n\n", "import sys\n"), "utf-8")  # is formatted
    id_ = header.read(script).id
    words = ("python", "-m", "repros", "check", "a_sum_is_short", "--stack", "current", "--no-bisect", *left_out)
    # The watch finds nothing, since nothing is trained. The tests would ask for the same.
    said = run(checkout, *words, code=1)
    assert f" {id_}/failing" in said
    assert said.endswith(f"\n\n{id_}: 1 to do\n")
    script.write_text(explain_watch(script.read_text("utf-8")), "utf-8")
    said = run(checkout, *words)
    assert said.splitlines()[-1].startswith(f"{id_}: ")
    assert said.endswith("(2 variants, 1 fail)\n")
    if left_out:
        names = (*find_files(checkout), "-m", "of_each_script", "-k", f"a_sum_is_short or {id_.lower()}")
        tested = run(checkout, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *names)
        assert re.search(r"^\d+ passed", tested, re.MULTILINE)
    assert run(checkout, "python", "-m", "ruff", "check") == "All checks passed!\n"
    assert "already formatted" in run(checkout, "python", "-m", "ruff", "format", "--check")
    changed = {line[3:] for line in run(checkout, "git", "status", "--short").splitlines()}
    golden = f"tests/diagnose/match/golden/{id_.lower()}"
    assert changed == {
        "tests/diagnose/watch/measured.jsonl",
        "repros/evidence/current/ledger.toml",
        "repros/catalogue/optimizers/a_sum_is_short.py",
        *(f"repros/evidence/current/{id_}.toml", f"{golden}.toml", f"{golden}-failing-auto-hand-current.log"),
    }
