"""What `repros check` says of the cells that it has run; the example project runs the command."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from repros.authoring.check import check as steps
from repros.authoring.check.check import Check, CheckObserver, Step, problems_of_runs
from repros.engine.stacks import stack
from repros.model import Cell, CellResult, Device, Verdict
from repros.model.catalogue import Catalogue
from tests import factories
from tools import checkout


def result(verdict: Verdict, reason: str = "") -> CellResult:
    repro = factories.repro(home="current", strategies=("ddp",))
    cell = Cell(repro, repro.failing, "ddp", Device.CPU, factories.environment("current", python=Path("python")), 1)
    return CellResult(cell, verdict, reason)


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


class Noting:
    """An observer that notes how each step has ended."""

    def __init__(self) -> None:
        self.seen: dict[str, Step] = {}
        self.title = ""

    def begun(self, title: str) -> None:
        self.title = title

    def report_progress(self, line: str) -> None:
        raise AssertionError(line)

    def ended(self, step: Step) -> None:
        self.seen[self.title] = step


@pytest.mark.parametrize(
    ("left", "tests"),
    [
        ("_bisect", Step([], "3 passed in 0.1s")),
        ("_watch", Step([], "not run: they fail while something above is left")),
        ("_check_range", Step([], "not run: they fail while something above is left")),
    ],
)
def test_the_tests_run_once_no_more_than_a_bisection_is_left(
    left: str, tests: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_check_rules", "_measure", "_capture_log", "_watch", "_check_range", "_bisect"):
        monkeypatch.setattr(steps, name, lambda *_, to_do=[name] * (name == left): Step(to_do))
    monkeypatch.setattr(checkout, "write_documents", lambda _: ([], "up to date"))
    monkeypatch.setattr(checkout, "run_script_tests", lambda _: checkout.Tested([], "3 passed in 0.1s"))
    repro, observer = factories.repro(), Noting()
    assert Check(Catalogue((repro,)), [repro], [], cast("CheckObserver", observer)).run() == [left]
    assert observer.seen["Tests of the catalogue"] == tests
