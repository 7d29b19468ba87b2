from __future__ import annotations

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
    ("name", "sentence"),
    [
        ("RPR-0022", "unknown repro 'RPR-0022'; 'repros list' shows all, and 'repros list WORD' those with a word."),
        ("22", "unknown repro '22'; 'repros list' shows all, and 'repros list WORD' those with a word."),
        ("ACME-0002", "unknown repro 'ACME-0002'; 'repros list' shows all, and 'repros list WORD' those with a word."),
        ("0", "unknown repro '0'; 'repros list' shows all, and 'repros list WORD' those with a word."),
        ("b_scrpt", "unknown repro 'b_scrpt'; did you mean 'b_script'?"),
        ("?", "unknown repro '?'; 'repros list' shows all, and 'repros list WORD' those with a word."),
        ("٢", "unknown repro '٢'; 'repros list' shows all, and 'repros list WORD' those with a word."),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(catalogue: Path, name: str, sentence: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load([catalogue]).find(name)
    assert str(caught.value) == sentence


def test_a_second_script_with_an_id_is_left_out_and_both_are_named(catalogue: Path) -> None:
    first, second = catalogue / "family" / "b_script.py", catalogue / "family" / "d_script.py"
    second.write_text(first.read_text())
    loaded = load([catalogue])
    assert [repro.path.name for repro in loaded] == ["c_script.py", "b_script.py", "a_script.py"]
    assert loaded.clashes == (
        f"{second}:6: id RPR-0002 is also that of {first}; this script is left out, give one of the two another id",
    )


def test_a_slug_of_two_catalogues_must_be_chosen_by_id(catalogue: Path) -> None:
    other = catalogue / "other" / "b_script.py"
    other.parent.mkdir()
    other.write_text(VALID.replace("RPR-0001", "ACME-0001"))
    loaded = load([catalogue])
    assert loaded.find("acme-0001").path == loaded.find("acme-1").path == other
    assert loaded.find("rpr-1").slug == "c_script"
    with pytest.raises(ReprosError, match=r"^1 is the name of ACME-0001, RPR-0001; choose one by its id\.$"):
        loaded.find("1")
    with pytest.raises(ReprosError, match=r"^b_script is the name of ACME-0001, RPR-0002; choose one by its id\.$"):
        loaded.find("b_script")


def test_a_script_that_is_given_twice_is_loaded_once(catalogue: Path) -> None:
    script = catalogue / "family" / "b_script.py"
    assert [repro.id for repro in load([script, catalogue / "family", catalogue])] == [
        "RPR-0001",
        "RPR-0002",
        "RPR-0003",
    ]


def test_a_file_that_is_given_must_be_a_repro(catalogue: Path) -> None:
    with pytest.raises(HeaderError, match=r"helper\.py:1: expected a PEP 723 block"):
        load([catalogue / "helper.py"])
    with pytest.raises(HeaderError, match=r"none\.py:1: cannot be read"):
        load([catalogue / "none.py"])


def test_an_empty_folder_is_an_empty_catalogue(tmp_path: Path) -> None:
    assert list(load([tmp_path])) == []
