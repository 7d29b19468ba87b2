"""What `repros check` says of the cells that it has run; the example project runs the command."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from repros.authoring.check import check as steps
from repros.authoring.check.check import CheckObserver, ScriptCheck, StepResult, problems_of_runs
from repros.authoring.check.project_steps import ProjectStep, Ran, When
from repros.engine.stacks import stack
from repros.model import Cell, CellResult, Device, Verdict
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from tests import factories


def result(verdict: Verdict, reason: str = "") -> CellResult:
    repro = factories.repro(home="current", strategies=("ddp",))
    cell = Cell(repro, repro.failing, "ddp", Device.CPU, factories.environment("current", python=Path("python")), 1)
    return CellResult(cell, verdict, reason)


def test_each_cell_that_does_not_agree_has_a_sentence() -> None:
    results = [result(Verdict.REPRODUCED), result(Verdict.DIFFERENT), result(Verdict.INFRA, "the disk is full")]
    different, infra = (f"RPR-0001 failing ddp cpu {result.cell.environment.name}" for result in results[1:])
    first, second = problems_of_runs([results[0].cell.repro], [stack("current")], results)
    assert first.startswith(f"fix {different}")
    assert second.startswith(f"rerun {infra}")
    assert second.endswith("the disk is full")


def test_a_new_failure_that_is_absent_does_not_fail() -> None:
    gone = result(Verdict.GONE)
    (problem,) = problems_of_runs([gone.cell.repro], [stack("current")], [gone])
    assert problem.startswith(f"fix {gone.cell.label}: it does not fail")


def test_a_home_that_was_not_chosen_is_asked_for() -> None:
    repro = result(Verdict.CLEAN).cell.repro
    (problem,) = problems_of_runs([repro], [stack("2023-12")], [])
    assert problem.endswith("repros check RPR-0001 --stack current")


class RecordingObserver:
    """An observer that records the result of each step."""

    def __init__(self) -> None:
        self.results: dict[str, StepResult] = {}
        self.title = ""
        self.lines: list[str] = []

    def begun(self, title: str) -> None:
        self.title = title

    def report_progress(self, line: str) -> None:
        self.lines.append(line)

    def ended(self, result: StepResult) -> None:
        self.results[self.title] = result


def run_check(
    monkeypatch: pytest.MonkeyPatch,
    configured: dict[str, tuple[When, Ran]],
    left: str = "",
    *,
    rules_only: bool = False,
    skipped: tuple[str, ...] = (),
) -> tuple[list[str], dict[str, StepResult]]:
    """Run a check in which one step of the engine has something to do, and whose project configures steps."""
    for name in ("_check_rules", "_measure", "_capture_log", "_check_range", "_bisect"):
        monkeypatch.setattr(steps, name, lambda *_, to_do=[name] * (name == left): StepResult(to_do))
    found = [ProjectStep(title, ("true",), when, Path(), ()) for title, (when, _) in configured.items()]
    monkeypatch.setattr(steps, "read_steps", lambda _: found)
    monkeypatch.setattr(ProjectStep, "run", lambda step, _: configured[step.title][1])
    repro, observer = factories.repro(), RecordingObserver()
    check = ScriptCheck(Catalogue((repro,)), [repro], [], cast("CheckObserver", observer), skipped)
    return check.run(rules_only=rules_only), observer.results


@pytest.mark.parametrize(
    ("left", "tests"),
    [
        ("_bisect", "3 passed in 0.1s"),
        ("_capture_log", "not run: it would fail while something above is left"),
        ("_check_range", "not run: it would fail while something above is left"),
    ],
)
def test_last_steps_run_once_no_more_than_a_bisection_is_left(
    left: str, tests: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_do, results = run_check(monkeypatch, {"Tests": (When.DONE, Ran([], "3 passed in 0.1s"))}, left)
    assert to_do == [left]
    assert results["Tests"] == StepResult([], tests)


def test_a_configured_step_of_the_rules_stops_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = {"Style": (When.RULES, Ran(["fix the style"])), "Watch": (When.RUNS, Ran([], "3 runs"))}
    for rules_only in (False, True):
        to_do, results = run_check(monkeypatch, configured, rules_only=rules_only)
        assert to_do == ["fix the style"]
        assert [*results] == ["Rules", "Style"]


def test_configured_steps_run_after_the_cells_and_what_they_leave_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = {
        "Tests": (When.DONE, Ran([], "3 passed")),
        "Watch": (When.RUNS, Ran(["explain it"])),
        "Pages": (When.RUNS, Ran([], "up to date")),
    }
    to_do, results = run_check(monkeypatch, configured)
    assert to_do == ["explain it"]
    assert [*results][-3:] == ["Watch", "Pages", "Tests"]
    assert results["Tests"].fine == "not run: it would fail while something above is left"


def test_a_step_that_is_skipped_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = {"Tests": (When.DONE, Ran([], "3 passed")), "Watch": (When.RUNS, Ran([], "3 runs"))}
    assert "Tests" not in run_check(monkeypatch, configured, skipped=("Tests",))[1]
    with pytest.raises(ReprosError, match="--skip Test: expected the title of a step: Tests, Watch"):
        run_check(monkeypatch, configured, skipped=("Test",))


def test_the_rules_alone_run_no_later_step(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = {"Tests": (When.DONE, Ran([], "3 passed")), "Watch": (When.RUNS, Ran([], "3 runs"))}
    assert [*run_check(monkeypatch, configured, rules_only=True)[1]] == ["Rules"]
