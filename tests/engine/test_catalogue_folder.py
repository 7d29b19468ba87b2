from __future__ import annotations

import re
from pathlib import Path

import pytest

from repros.engine.catalogue import load
from repros.engine.header import HeaderError
from repros.model.errors import ReprosError, UnknownNameError
from tests.factories import VALID


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    for number, slug in ((2, "b"), (1, "c"), (3, "a")):
        script = tmp_path / "family" / f"{slug}_script.py"
        script.parent.mkdir(exist_ok=True)
        script.write_text(VALID.replace("RPR-0001", f"RPR-{number:04}"))
    (tmp_path / "helper.py").write_text("no_header = True\n")
    (tmp_path / "notes.txt").write_text(VALID)
    return tmp_path


def test_every_script_is_loaded_in_the_order_of_ids(catalogue: Path) -> None:
    assert [(repro.id, repro.slug) for repro in load([catalogue])] == [
        ("RPR-0001", "c_script"),
        ("RPR-0002", "b_script"),
        ("RPR-0003", "a_script"),
    ]


@pytest.mark.parametrize("name", ["RPR-0002", "rpr-0002", "rpr-2", "RPR2", "2", "0002", "b_script"])
def test_a_repro_is_found_by_id_as_one_writes_it_and_by_slug(catalogue: Path, name: str) -> None:
    assert load([catalogue]).find(name).id == "RPR-0002"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("RPR-0022", "'repros list'"),
        ("22", "'repros list'"),
        ("ACME-0002", "'repros list'"),
        ("0", "'repros list'"),
        ("b_scrpt", "'b_script'"),
        ("?", "'repros list'"),
        ("٢", "'repros list'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(catalogue: Path, name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=f"'{re.escape(name)}'.*{hint}"):
        load([catalogue]).find(name)


def test_a_second_script_with_an_id_is_left_out_and_both_are_named(catalogue: Path) -> None:
    first, second = catalogue / "family" / "b_script.py", catalogue / "family" / "d_script.py"
    second.write_text(first.read_text())
    loaded = load([catalogue])
    assert [repro.path.name for repro in loaded] == ["c_script.py", "b_script.py", "a_script.py"]
    (clash,) = loaded.clashes
    assert clash.startswith(f"{second}:6: ")
    assert [part in clash for part in ("RPR-0002", str(first))] == [True, True]


def test_a_slug_of_two_catalogues_must_be_chosen_by_id(catalogue: Path) -> None:
    other = catalogue / "other" / "b_script.py"
    other.parent.mkdir()
    other.write_text(VALID.replace("RPR-0001", "ACME-0001"))
    loaded = load([catalogue])
    assert loaded.find("acme-0001").path == loaded.find("acme-1").path == other
    assert loaded.find("rpr-1").slug == "c_script"
    with pytest.raises(ReprosError, match=r"^1 .*ACME-0001, RPR-0001"):
        loaded.find("1")
    with pytest.raises(ReprosError, match=r"^b_script .*ACME-0001, RPR-0002"):
        loaded.find("b_script")


def test_a_script_that_is_given_twice_is_loaded_once(catalogue: Path) -> None:
    script = catalogue / "family" / "b_script.py"
    assert [repro.id for repro in load([script, catalogue / "family", catalogue])] == [
        "RPR-0001",
        "RPR-0002",
        "RPR-0003",
    ]


def test_a_file_that_is_given_must_be_a_repro(catalogue: Path) -> None:
    with pytest.raises(HeaderError, match=r"helper\.py:1: "):
        load([catalogue / "helper.py"])
    with pytest.raises(HeaderError, match=r"none\.py:1: .*No such file"):
        load([catalogue / "none.py"])


def test_an_empty_folder_is_an_empty_catalogue(tmp_path: Path) -> None:
    assert list(load([tmp_path])) == []
