"""Every script of the catalogue follows the rules."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from repros.authoring.check.rules import RULES, CheckedScript, find_unnamed_alternatives
from repros.authoring.new.ids import is_provisional
from repros.engine import header
from repros.model.settings import CATALOGUE
from tests.package_catalogue import load

SCRIPTS = sorted(CATALOGUE.rglob("*.py"))

read = cache(header.read)


@pytest.mark.of_all_scripts
def test_ids_are_unique_and_slugs_are_too() -> None:
    catalogue = load()
    assert catalogue.clashes == ()
    assert len(list(catalogue)) == len(SCRIPTS) == len({repro.slug for repro in catalogue})
    assert all(repro.id.startswith("RPR-") for repro in catalogue)


@pytest.mark.of_all_scripts
@pytest.mark.parametrize("branch", ["main", "origin/main"])
def test_ids_on_main_are_final_and_stay(branch: str) -> None:
    """Whoever merges gives them: python -m tools.number."""
    words = ["git", "grep", "--extended-regexp", '^# id = "RPR-', branch, "--", "repros/catalogue"]
    found = subprocess.run(words, cwd=CATALOGUE.parents[1], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"there is no branch {branch} here")
    on_main = dict(re.findall(r":repros/catalogue/(\S+):# id = \"(RPR-\d{4})\"", found.stdout))
    assert on_main
    assert [id_ for id_ in on_main.values() if is_provisional(id_)] == []
    here = {path.relative_to(CATALOGUE).as_posix(): read(path).id for path in SCRIPTS}
    assert {path: here[path] for path in on_main.keys() & here.keys() if here[path] != on_main[path]} == {}


@pytest.mark.of_each_script
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_follows_each_rule(path: Path) -> None:
    script = CheckedScript(read(path))
    assert {rule.__name__: broken for rule in RULES if (broken := list(rule(script)))} == {}


@pytest.mark.of_all_scripts
def test_repros_with_the_same_message_name_each_other() -> None:
    catalogue = load()
    assert [sentence for repro in catalogue for sentence in find_unnamed_alternatives(repro, catalogue)] == []
