"""A cell whose port another process has, in real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from repros.engine.cells import run_cell_with_port
from repros.model import Cell, Unavailable, Verdict


@pytest.mark.slow
def test_a_port_that_was_taken_is_chosen_anew(toy_cell: Callable[..., Cell], tmp_path: Path) -> None:
    result = run_cell_with_port(toy_cell("loses_its_port"), tmp_path)
    assert (result.verdict, result.signature) == (Verdict.REPRODUCED, "RuntimeError: the documented failure")
    assert {folder.parent.name for folder in tmp_path.rglob("RPR-9022*")} == {tmp_path.name, "again"}


@pytest.mark.slow
def test_a_port_that_is_taken_twice_is_a_failure_of_the_machine(toy_cell: Callable[..., Cell], tmp_path: Path) -> None:
    result = run_cell_with_port(toy_cell("loses_its_port", "always"), tmp_path)
    assert result.verdict is Verdict.INFRA
    assert "Address already in use" in result.reason
    assert [folder.parent.name for folder in tmp_path.rglob("again/RPR-9022*")] == ["again"]


@pytest.mark.slow
def test_what_another_failure_broke_is_not_run_again(toy_cell: Callable[..., Cell], tmp_path: Path) -> None:
    result = run_cell_with_port(toy_cell("kills_itself"), tmp_path)
    assert not (tmp_path / "again").exists(), result.reason


def test_a_cell_that_cannot_run_says_so_once(toy_cell: Callable[..., Cell], tmp_path: Path) -> None:
    result = run_cell_with_port(Unavailable(toy_cell("exits"), "needs g++"), tmp_path)
    assert (result.verdict, result.reason) == (Verdict.UNAVAILABLE, "needs g++")
