"""Families: where scripts lie, what belongs there, and what is refused."""

from __future__ import annotations

import pytest

from repros.authoring.families import FAMILIES, describe_families, refuse_unknown
from repros.authoring.new.skeletons import SKELETONS
from repros.model.errors import ReprosError
from repros.model.settings import CATALOGUE


def test_every_folder_is_a_family() -> None:
    assert {path.parent.name for path in CATALOGUE.rglob("*.py")} <= FAMILIES.keys()


def test_each_has_a_sentence_and_a_template() -> None:
    assert [name for name, family in FAMILIES.items() if len(family.about) < 10 or family.about.endswith(".")] == []
    assert {family.template for family in FAMILIES.values()} <= SKELETONS.keys()
    assert list(FAMILIES) == sorted(FAMILIES)


def test_another_is_refused_with_all_that_there_are() -> None:
    refuse_unknown("data")
    with pytest.raises(ReprosError) as caught:
        refuse_unknown("dataset")
    sentence, _, families = str(caught.value).partition("\n")
    assert sentence.startswith("'dataset' ")
    assert families == describe_families()
    assert [line.split()[0] for line in families.splitlines()] == list(FAMILIES)
