"""Every script of the catalogue follows the rules."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from repros.authoring.rules import RULES, Rule, Script, find_unnamed_rivals
from repros.engine import header
from repros.engine.catalogue import load
from repros.settings import CATALOGUE

SCRIPTS = sorted(CATALOGUE.rglob("*.py"))

read = cache(header.read)


@pytest.mark.of_all_scripts
def test_ids_are_unique_and_slugs_are_too() -> None:
    catalogue = load()
    assert catalogue.clashes == ()
    assert len(list(catalogue)) == len(SCRIPTS) == len({repro.slug for repro in catalogue})
    assert all(repro.id.startswith("RPR-") for repro in catalogue)


@pytest.mark.of_each_script
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_follows_a_rule(path: Path, rule: Rule) -> None:
    assert list(rule(Script(read(path)))) == []


@pytest.mark.of_all_scripts
def test_repros_with_the_same_message_name_each_other() -> None:
    catalogue = load()
    assert [sentence for repro in catalogue for sentence in find_unnamed_rivals(repro, catalogue)] == []
