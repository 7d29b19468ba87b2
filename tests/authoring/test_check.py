"""What `repros check` says of the cells that it has run; the example project runs the command."""

from __future__ import annotations

from pathlib import Path

from repros.authoring.check import problems_of_runs
from repros.model import Cell, Device, Result, Verdict
from repros.stacks import stack
from tests import factories


def result(verdict: Verdict, reason: str = "") -> Result:
    repro = factories.repro(home="current", strategies=("ddp",))
    cell = Cell(repro, repro.failing, "ddp", Device.CPU, factories.environment("current", python=Path("python")), 1)
    return Result(cell, verdict, reason)


def test_each_cell_that_does_not_agree_has_a_sentence() -> None:
    results = [result(Verdict.REPRODUCED), result(Verdict.DIFFERENT), result(Verdict.INFRA, "the disk is full")]
    different, infra = (f"RPR-0001 failing ddp cpu {result.cell.environment.name}" for result in results[1:])
    assert list(problems_of_runs([results[0].cell.repro], [stack("current")], results)) == [
        f"fix {different}: it is different; its evidence is not kept",
        f"run {infra} again, which could not be judged: the disk is full",
    ]


def test_a_home_that_was_not_chosen_is_asked_for() -> None:
    repro = result(Verdict.CLEAN).cell.repro
    assert list(problems_of_runs([repro], [stack("2023-12")], [])) == [
        "run it on its home: repros check RPR-0001 --stack current"
    ]
