"""Stacks written as data: their names, their text, and both files or none."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from repros.engine.stacks import load_stacks, read_stack
from repros.engine.stacks.write import check_new_name, format_stack, remove_stack, write_stack
from repros.model.errors import ReprosError
from repros.model.stack import Stack


def stack_in(folder: Path) -> Stack:
    wanted = (Requirement("torch<2.16,==2.15.0"), Requirement("numpy<2"))
    return Stack("mine", 'so "called"', "3.11", wanted, dt.date(2026, 11, 24), folder / "mine.lock.txt")


def test_a_stack_is_written_pins_first_and_read_again(tmp_path: Path) -> None:
    file = write_stack(stack_in(tmp_path), "torch==2.15.0\n")
    assert file.read_text("utf-8") == (
        'about = "so \\"called\\""\npython = "3.11"\nrequirements = [\n    "torch==2.15.0,<2.16",\n    "numpy<2",\n]\n'
        "until = 2026-11-24\n\n# Its size has not been measured; 2023-05.toml says how.\n"
    )
    assert read_stack(file) == stack_in(tmp_path)
    remove_stack(stack_in(tmp_path))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("known", load_stacks().values(), ids=load_stacks())
def test_every_stack_can_be_written_and_read_again(known: Stack, tmp_path: Path) -> None:
    moved = replace(known, lock=tmp_path / known.lock.name)
    (tmp_path / f"{known.name}.toml").write_text(format_stack(moved), "utf-8")
    assert read_stack(tmp_path / f"{known.name}.toml") == moved


@pytest.mark.parametrize("name", ["", "home", "bisections", "../x", "a b", "-x", ".x", "ü", "x" * 41])
def test_a_name_that_no_option_or_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ReprosError, match=re.escape(repr(name))):
        check_new_name(name, tmp_path, ())


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    check_new_name("2026-11", tmp_path, ("current",))
    (tmp_path / "2026-11.lock.txt").touch()
    for taken in ((), ("2026-11",)):
        with pytest.raises(ReprosError, match="'2026-11'"):
            check_new_name("2026-11", tmp_path, taken)


def test_nothing_is_left_of_a_stack_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").mkdir()  # its lock can be written and the file itself cannot, even by root
    with pytest.raises(ReprosError, match=r"mine\.toml .*\(Is a directory\)"):
        write_stack(stack_in(tmp_path), "torch==2.15.0\n")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.toml"]
