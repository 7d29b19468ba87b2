"""The pipeline, with the real engine and fake environments."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from repros.engine import environment as engine_environment
from repros.engine import environments, record
from repros.engine.catalogue import load
from repros.engine.environment import Targets
from repros.engine.pipeline import run_specs
from repros.engine.plan import Selection, select
from repros.engine.probe import ProbeError
from repros.engine.run_options import Observer, RunOptions
from repros.engine.stacks import stack
from repros.model import Cell, Device, Environment, Repeats, Unavailable, Verdict
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError, UnknownNameError
from tests.factories import environment
from tests.toy_cells import TOYS


class RecordingObserver(Observer):
    """Keeps every call as a line."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def report_progress(self, line: str) -> None:
        self.calls.append(line)

    def planned(self, cells: Sequence[Cell | Unavailable]) -> None:
        self.calls.append(f"{len(cells)} planned")

    def started(self, cell: Cell) -> None:
        self.calls.append(f"{cell.variant.name} started")

    def unrecorded(self, error: record.NotRecordedError) -> None:
        self.calls.append(f"unrecorded: {error}")


@pytest.fixture
def catalogue() -> Catalogue:
    return load([TOYS / "raises.py"])


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Let every stack be this interpreter; return the names of the probed environments, and whether with `sim`."""
    probed: list[tuple[str, bool]] = []

    def probe(
        python: Path, name: str | None = None, *, sim: bool = True, report_progress: object = None
    ) -> Environment:
        probed.append((name or str(python), sim))
        return environment(name or str(python), python=Path(sys.executable))

    monkeypatch.setattr(
        environments,
        "ensure",
        lambda wanted, report_progress: report_progress(f"making {wanted.name}") or Path(sys.executable),
    )
    monkeypatch.setattr(engine_environment, "probe", probe)
    return probed


SOME = Selection(variants=("failing", "fixed", "gone"))


def test_a_selection_is_run_judged_and_recorded(
    catalogue: Catalogue, here: list[tuple[str, bool]], tmp_path: Path
) -> None:
    out, observer = tmp_path / "results.jsonl", RecordingObserver()
    results = list(
        run_specs(select(catalogue, SOME), Targets(stacks=("home", "current")), out, observer, RunOptions(jobs=1))
    )
    assert [result.verdict for result in results] == [Verdict.REPRODUCED, Verdict.CLEAN, Verdict.GONE]
    assert [line["verdict"] for line in record.read(out)] == ["reproduced", "clean", "gone"]
    assert observer.calls == ["making current", "3 planned", "failing started", "fixed started", "gone started"]
    assert here == [("current", False)]
    (runs,) = (tmp_path / ".repros/runs").iterdir()
    assert sorted(folder.name for folder in runs.iterdir()) == [
        ".made-by-repros",
        "RPR-9001-failing-plain-cpu-current",
        "RPR-9001-fixed-plain-cpu-current",
        "RPR-9001-gone-plain-cpu-current",
        "servers",
    ]


def test_each_result_is_recorded_before_it_is_yielded(
    catalogue: Catalogue, here: list[tuple[str, bool]], tmp_path: Path
) -> None:
    out = tmp_path / "results.jsonl"
    for count, _ in enumerate(
        run_specs(select(catalogue, SOME), Targets(stacks=("home",)), out, Observer(), RunOptions(jobs=1)), 1
    ):
        assert len(list(record.read(out))) == count
    assert count == 3


def test_the_users_own_interpreter_is_probed_and_used(
    catalogue: Catalogue, here: list[tuple[str, bool]], tmp_path: Path
) -> None:
    where = Targets(python=Path(sys.executable))
    results = list(
        run_specs(
            select(catalogue, Selection(variants=("fixed",))),
            where,
            tmp_path / "r.jsonl",
            Observer(),
            RunOptions(jobs=1),
        )
    )
    assert [(result.cell.environment.name, result.verdict) for result in results] == [(sys.executable, Verdict.CLEAN)]
    assert here == [(sys.executable, False)]


def test_a_required_device_is_looked_for_even_if_no_cell_needs_it(
    catalogue: Catalogue, here: list[tuple[str, bool]], tmp_path: Path
) -> None:
    options = RunOptions(require=(Device.CPU, Device.SIM))
    with contextlib.suppress(ReprosError):
        list(run_specs(select(catalogue, SOME), Targets(stacks=("home",)), tmp_path / "r.jsonl", Observer(), options))
    assert here == [("current", True)]


def test_a_stack_that_cannot_be_made_is_a_result(
    catalogue: Catalogue, here: list[tuple[str, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(wanted: object, report_progress: object) -> Path:
        raise environments.EnvironmentFailedError(stack("current"), "no network")

    monkeypatch.setattr(environments, "ensure", ensure)
    (result,) = run_specs(
        select(catalogue, Selection(variants=("fixed",))), Targets(stacks=("home",)), tmp_path / "r.jsonl", Observer()
    )
    assert (result.verdict, result.observation) == (Verdict.UNAVAILABLE, None)
    assert [part in result.reason for part in ("stack current", "no network")] == [True, True]
    (line,) = record.read(tmp_path / "r.jsonl")
    assert line["reason"] == result.reason


@pytest.mark.parametrize(
    ("selection", "where", "error"),
    [
        (Selection(repros=("RPR-0001",)), Targets(stacks=("home",)), UnknownNameError),
        (SOME, Targets(stacks=("curent",)), UnknownNameError),
        (SOME, Targets(python=Path("/nowhere/python")), ProbeError),
        (Selection(devices=(Device.CUDA,)), Targets(stacks=("home",)), ReprosError),
    ],
)
def test_errors_that_the_user_can_correct_come_before_the_first_cell(
    catalogue: Catalogue, tmp_path: Path, selection: Selection, where: Targets, error: type[Exception]
) -> None:
    with pytest.raises(error):
        list(run_specs(select(catalogue, selection), where, tmp_path / "r.jsonl", Observer()))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_does_not_end_the_run(
    catalogue: Catalogue, here: list[tuple[str, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record, "_append_line", full)
    observer = RecordingObserver()
    results = list(
        run_specs(
            select(catalogue, SOME), Targets(stacks=("home",)), tmp_path / "r.jsonl", observer, RunOptions(jobs=1)
        )
    )
    assert len(results) == 3
    unrecorded = [line for line in observer.calls if "unrecorded" in line]
    for line, result in zip(unrecorded, results, strict=True):
        assert line.startswith(f"unrecorded: {tmp_path / 'r.jsonl'} ")
        assert [part in line for part in (result.cell.label, "No space left on device")] == [True, True]


def test_repeats_give_one_result(catalogue: Catalogue, here: list[tuple[str, bool]], tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    selection, where = Selection(variants=("failing",)), Targets(stacks=("home",))
    (result,) = run_specs(select(catalogue, selection), where, out, Observer(), RunOptions(repeat=3))
    assert (result.verdict, result.repeats) == (Verdict.REPRODUCED, Repeats(3, 3))
    (line,) = record.read(out)
    assert line["repeats"] == {"n": 3, "agreeing": 3}
    folders = (tmp_path / ".repros/runs").glob("*/RPR-9001-failing-plain-cpu-current/*")
    assert sorted(folder.name for folder in folders) == ["001", "002", "003"]
