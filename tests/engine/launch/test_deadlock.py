"""A documented hang is seen by evidence; what only seems to hang gets all of its time."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine import cells as cell_jobs
from repros.engine.cells import observe
from repros.engine.environment import Targets, prepare
from repros.engine.judge import judge
from repros.engine.launch import Servers, stacks
from repros.engine.plan import CellSpec, Selection, plan, select
from repros.model import Cell, CellResult, Device, End, Ending, Signature, Verdict
from tests import factories
from tests.package_catalogue import load

HANGS = {
    "failing": ["rank 0 in recv", "rank 1 in recv"],
    "with_a_loader": ["rank 0 in recv", "rank 1 in recv"],
    "at_exit": ["rank 0 in barrier", "rank 1 in recv"],
}
WAIT = ("failing", "sleeps_before_a_group", "loader_sleeps", "thread_sleeps", "stopped", "slowed", "computes")
"""Variants of `seems_to_hang` that return, and use little CPU time until then, except the last."""
WORK = ("compiles", "compiles_beside", "starved")
"""Others, which take all of it."""
LONG = 15.0
"""Seconds that they take at least."""

SideBySide = Callable[..., Mapping[str, CellResult]]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the evidence is read from Linux's /proc"),
]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers(tmp_path_factory.mktemp("servers")) as found:
        yield found


def run_all(cells: Mapping[str, Cell], folder: Path, servers: Servers | None) -> Mapping[str, CellResult]:
    """Run cells all at once, since most of them wait."""
    with ThreadPoolExecutor(len(cells)) as pool:
        running = {name: pool.submit(observe, cell, folder / name, servers=servers) for name, cell in cells.items()}
    return {name: judge(cells[name], future.result()) for name, future in running.items()}


@pytest.fixture
def side_by_side(servers: Servers, toy_cell: Callable[..., Cell], current_python: Path, tmp_path: Path) -> SideBySide:
    """Return a function that runs variants of a toy."""

    def run_them(slug: str, *variants: str, cold: bool = False) -> Mapping[str, CellResult]:
        cells = {variant: toy_cell(slug, variant, current_python) for variant in variants}
        return run_all(cells, tmp_path, None if cold else servers)

    return run_them


def test_a_hang_is_seen_long_before_its_deadline(side_by_side: SideBySide) -> None:
    for variant, result in side_by_side("hangs_between_ranks", *HANGS).items():
        assert (result.verdict, result.signature) == (Verdict.REPRODUCED, "hang"), (variant, result.reason)
        seen = result.observation
        assert seen is not None
        assert seen.deadlock is not None, variant
        assert result.reason.endswith(f", {seen.deadlock}")
        assert re.findall(r"rank \d in \w+", seen.deadlock) == HANGS[variant]


def test_a_launcher_waits_too(side_by_side: SideBySide) -> None:
    result = side_by_side("hangs_between_ranks", "spawned", cold=True)["spawned"]
    assert (result.verdict, result.signature) == (Verdict.REPRODUCED, "hang"), result.reason
    seen = result.observation
    assert seen is not None
    assert seen.deadlock is not None
    assert [process.name for process in seen.ranks] == ["launcher", "rank 0", "rank 1"]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("variants", [WORK, WAIT], ids=["work", "wait"])
def test_what_ends_later_is_no_hang(side_by_side: SideBySide, variants: tuple[str, ...]) -> None:
    possible = [variant for variant in variants if shutil.which("g++") or not variant.startswith("compiles")]
    for variant, result in side_by_side("seems_to_hang", *possible).items():
        assert result.verdict is Verdict.GONE, (variant, result.reason)
        seen = result.observation
        assert seen is not None
        assert {process.ending for process in seen.ranks} == {Ending.RETURNED}
        assert seen.seconds > LONG, variant


def test_a_timeout_before_the_deadline_decides(side_by_side: SideBySide) -> None:
    for variant, result in side_by_side("seems_to_hang", "times_out", "group_times_out").items():
        assert result.verdict is Verdict.DIFFERENT, (variant, result.reason)
        seen = result.observation
        assert seen is not None
        assert (seen.deadlock, {process.ending for process in seen.ranks}) == (None, {Ending.RAISED})
        # The first rank to time out closes the other's connection.
        assert any("imed out waiting" in process.chain[0].message for process in seen.ranks), variant


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Cell]]:
    """The cells of the catalogue's hangs on their reference stack."""
    specs = [spec for spec in select(load(), Selection(("RPR-0025", "RPR-0042"))) if _documents_a_hang(spec)]
    with prepare(specs, Targets(stacks=("home",)), print) as environments:
        planned = plan(specs, environments)
        cells = {f"{cell.repro.id} {cell.variant.name}": cell for cell in planned if isinstance(cell, Cell)}
        if len(cells) < len(specs):
            pytest.skip(f"the reference stack could not be made: {planned}")
        yield cells


def _documents_a_hang(spec: CellSpec) -> bool:
    return spec.variant.signature.ends == End(Ending.TIMED_OUT) and spec.variant.outcome == "fails"


def test_a_documented_hang_ends_as_at_its_deadline(
    documented: Mapping[str, Cell], servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(documented) == ["RPR-0025 failing", "RPR-0042 failing", "RPR-0042 metric_logged"]
    early = run_all(documented, tmp_path / "early", servers)
    monkeypatch.setattr(cell_jobs, "expects_deadlock", lambda _: False)
    soon = {name: replace(cell, repro=replace(cell.repro, deadline=12)) for name, cell in documented.items()}
    late = run_all(soon, tmp_path / "late", servers)
    for name, result in early.items():
        assert result.observation is not None
        assert result.observation.deadlock is not None, name
        assert (result.verdict, result.signature) == (Verdict.REPRODUCED, "hang")
        assert _endings(result) == _endings(late[name])


def _endings(result: CellResult) -> list[tuple[str, Ending, stacks.StackTrace]]:
    assert result.observation is not None
    return [(process.name, process.ending, stacks.threads(process.stacks)[-1]) for process in result.observation.ranks]


HANG = Signature(ends=End(Ending.TIMED_OUT))
DOCUMENTED = factories.cell(variant=factories.variant(signature=HANG), device=Device.SIM)


@pytest.mark.parametrize(
    ("cell", "may_be_seen"),
    [
        (DOCUMENTED, True),
        (replace(DOCUMENTED, device=Device.CUDA), False),
        (replace(DOCUMENTED, processes=1), False),
        (factories.cell(device=Device.SIM), False),
        (replace(DOCUMENTED, variant=replace(DOCUMENTED.variant, affected=factories.conditions("torch<2"))), False),
    ],
    ids=["documented", "GPUs compute unseen", "one rank", "another failure", "not on these releases"],
)
def test_which_cells_need_not_wait_for_their_deadline(cell: Cell, may_be_seen: bool) -> None:
    assert cell_jobs.job_of(cell).expects_hang == may_be_seen
