"""The tests that `repros check` runs for a script: those with a marker, and no other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from repros.authoring.script_tests import ALL, EACH, FILES, Ran, pytest_words
from repros.engine.catalogue import load

ROOT = Path(__file__).parents[2]


def collected(*words: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_every_file_with_a_marked_test_is_collected() -> None:
    files = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py")}
    marked = {name for name, text in files.items() if re.search(rf"pytest\.mark\.({EACH}|{ALL})\b", text)}
    assert marked == set(FILES)


def test_each_file_has_tests_of_a_script_and_other_scripts_have_their_own() -> None:
    catalogue = load()
    first, other = catalogue.find("RPR-0001"), catalogue.find("RPR-0006")
    chosen = collected(*pytest_words(first))
    assert {name.partition("::")[0] for name in chosen} == set(FILES)
    each = [name for name in chosen if "[" in name]
    assert any(first.slug in name for name in each)
    assert any(first.id.lower() in name for name in each)
    assert not [name for name in chosen if other.slug in name or f"[{other.id.lower()}" in name]
    # The tables of the documents are compared: a name that was not in the -k of old left them out.
    assert any("test_the_tables_are_those_of_the_catalogue" in name for name in chosen)


def test_the_last_line_has_the_count() -> None:
    assert Ran(passed=True, output="....\n4 passed in 0.1s\n").last_line == "4 passed in 0.1s"
