"""Warm launch: a toy gets the same verdict as by `python script.py`, and leaves no process behind either."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from repros.engine.cells import job_of, observe
from repros.engine.judge import judge
from repros.engine.launch import Servers, logs, run
from repros.engine.launch import server as launching
from repros.model import Cell, Ending, Observation, Verdict
from tests.endings import ENDINGS
from tests.toy_cells import living

Warm = Callable[..., tuple[Cell, Observation]]

COLD_ONLY = {
    # their failure depends on their launcher, or on having none
    *(("dies_on_rank_1", variant) for variant in ("failing", "unnoticed", "undocumented")),
    *((slug, variant) for slug in ("raises_in_a_relaunched_rank", "one_rank_only") for variant in ("failing", "fixed")),
    ("exits", "on_rank_1"),
    # A rank that deletes its own `start` is unknown; only a main process is known without its events.
    *(("corrupts_its_events", variant) for variant in ("emptied", "removed")),
}
SAME = [ending for ending in ENDINGS if ending[:2] not in COLD_ONLY]


@pytest.fixture(scope="module")
def servers(current_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers(tmp_path_factory.mktemp("servers")) as found:
        yield found


@pytest.fixture
def warm(servers: Servers, toy_cell: Callable[..., Cell], current_python: Path, tmp_path: Path) -> Warm:
    """Return a function that runs a toy through the server and checks that it leaves no process behind."""

    def run_it(slug: str, variant: str = "failing", **changes: object) -> tuple[Cell, Observation]:
        cell = toy_cell(slug, variant, current_python)
        cell = replace(cell, repro=replace(cell.repro, **changes)) if changes else cell  # type: ignore[arg-type]
        seen = observe(cell, tmp_path / "cell", servers=servers)
        assert living(tmp_path / "cell") == []
        assert seen.launch == "warm"
        return cell, seen

    return run_it


@pytest.mark.parametrize(
    ("script", "verdict", "signature"),
    [((first, two), *rest) for first, two, *rest in SAME],
    ids=[f"{first}-{two}" for first, two, *_ in SAME],
)
def test_a_warm_toy_gets_the_verdict_of_a_cold_one(
    warm: Warm, script: tuple[str, str], verdict: Verdict, signature: str | None
) -> None:
    result = judge(*warm(*script))
    assert (result.verdict, result.signature) == (verdict, signature), result


@pytest.mark.parametrize("slug", ["ignores_signals", "thread_never_ends"])
def test_a_hang_is_ended_at_the_deadline(warm: Warm, slug: str) -> None:
    cell, seen = warm(slug)
    assert judge(cell, seen).verdict is Verdict.REPRODUCED
    assert seen.leftovers == 0
    (rank,) = [process for process in seen.processes if process.role == "rank"]
    assert rank.ending is Ending.TIMED_OUT
    assert f"{slug}.py" in rank.stacks


def test_a_hang_in_a_collective_shows_where_every_rank_waits(warm: Warm) -> None:
    cell, seen = warm("hangs_in_a_collective", deadline=8)
    assert judge(cell, seen).verdict is Verdict.REPRODUCED
    rank_0, rank_1 = [process for process in seen.processes if process.role == "rank"]
    assert "in all_reduce" in rank_0.stacks
    assert "in recv" in rank_1.stacks


@pytest.mark.parametrize(("variant", "verdict"), [("failing", Verdict.REPRODUCED), ("fixed", Verdict.CLEAN)])
def test_two_ranks_get_their_verdict(warm: Warm, variant: str, verdict: Verdict) -> None:
    cell, seen = warm("takes_its_peer_down", variant)
    result = judge(cell, seen)
    assert result.verdict is verdict, result
    assert sorted(process.rank for process in seen.processes if process.rank is not None) == [0, 1]


@pytest.mark.parametrize("variant", ["failing", "fixed", "foreign"])
def test_a_grandchild_is_ended(warm: Warm, variant: str) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    cell, seen = warm("leaves_a_grandchild", variant)
    assert judge(cell, seen).verdict is (Verdict.REPRODUCED if variant == "failing" else Verdict.CLEAN)
    after = [child for child in psutil.Process().children(recursive=True) if child.name() == "sleep"]
    assert not {child.pid for child in after} - before


def test_every_rank_has_its_own_log_and_a_long_one_is_cut(warm: Warm) -> None:
    _, seen = warm("prints_200_mb")
    found = [process.log for process in seen.processes if process.role == "rank"]
    assert len(set(found)) == 2
    for log in found:
        assert log is not None
        assert log.stat().st_size <= logs.CAP
        assert log.read_text().startswith("the first line\n")
        assert logs.tail(seen.folder, log)[-1] == "RuntimeError: the documented failure"


@pytest.mark.slow
def test_a_stopped_server_costs_only_its_cell(
    toy_cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "_FORK_TIMEOUT", 1.0)
    cell = toy_cell("raises")
    with Servers(tmp_path / "servers") as own:
        assert judge(cell, observe(cell, tmp_path / "first", servers=own)).verdict is Verdict.REPRODUCED
        (server,) = own._servers.values()
        os.kill(server.pid, signal.SIGSTOP)
        result = judge(cell, observe(cell, tmp_path / "second", servers=own))
        assert result.verdict is Verdict.INFRA
        assert "does not answer" in result.reason
        assert judge(cell, observe(cell, tmp_path / "third", servers=own)).verdict is Verdict.REPRODUCED


LEAVES = """\
import atexit, os
atexit.register(lambda: open(os.environ["LEFT"], "a").write(f"{os.getpid()} "))
"""
LIBRARIES = """\
import torch, weakref
def libraries():
    return sum(finalizer.peek()[1].__module__ == "torch.library" for finalizer in list(weakref.finalize._registry))
before = libraries()
own = torch.library.Library("own", "DEF")
raise ValueError(f"{before} before, {libraries()} now")
"""


def test_ranks_run_the_exit_handlers_of_the_imports_and_their_leader_does_not(
    toy_cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaves.py").write_text(LEAVES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LEFT", str(tmp_path / "left"))
    job = replace(job_of(toy_cell("raises", "fixed")), modules=("leaves",), ranks=2)
    with Servers(tmp_path / "servers") as own:
        seen = run(job, tmp_path / "run", servers=own)
        left = {int(pid) for pid in (tmp_path / "left").read_text().split()}
    assert left == {process.pid for process in seen.processes if process.role == "rank"}
    assert [(process.role, process.ending) for process in seen.processes] == [
        ("leader", Ending.RETURNED), ("rank", Ending.RETURNED), ("rank", Ending.RETURNED)
    ]  # fmt: skip


def test_a_rank_removes_its_own_operators_and_none_of_the_imports(
    toy_cell: Callable[..., Cell], current_python: Path, servers: Servers, tmp_path: Path
) -> None:
    script = tmp_path / "libraries.py"
    script.write_text(LIBRARIES)
    job = job_of(toy_cell("raises", "fixed", current_python))
    seen = run(replace(job, script=script, arguments=(str(script),)), tmp_path / "run", servers=servers)
    (rank,) = [process for process in seen.processes if process.role == "rank"]
    assert [raised.message for raised in rank.chain] == ["0 before, 1 now"]
