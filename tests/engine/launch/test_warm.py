"""Forked from a warm server, a toy gets the verdict that `python script.py` gets; and nothing of it is left either."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from repros.engine.judge import judge
from repros.engine.launch import Servers, logs, run
from repros.engine.launch import warm as launching
from repros.model import Cell, Ending, Observation, Verdict
from tests.endings import ENDINGS
from tests.toy_cells import living

Warm = Callable[..., tuple[Cell, Observation]]

OTHERWISE = {
    # about their launcher, or about there being none
    *(("dies_on_rank_1", variant) for variant in ("failing", "nobody_waits", "undocumented")),
    *((slug, variant) for slug in ("raises_in_a_relaunched_rank", "one_rank_only") for variant in ("failing", "fixed")),
    ("exits", "on_rank_1"),
    # A rank that wipes out its own start was never there: only the main process is known without.
    *(("corrupts_its_events", variant) for variant in ("emptied", "removed")),
}
SAME = [ending for ending in ENDINGS if ending[:2] not in OTHERWISE]


@pytest.fixture(scope="module")
def servers(current_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers(tmp_path_factory.mktemp("servers")) as found:
        yield found


@pytest.fixture
def warm(servers: Servers, toy_cell: Callable[..., Cell], current_python: Path, tmp_path: Path) -> Warm:
    """Run a toy through the server; nothing of it may be left running."""

    def run_it(slug: str, variant: str = "failing", **changes: object) -> tuple[Cell, Observation]:
        cell = toy_cell(slug, variant, current_python)
        cell = replace(cell, repro=replace(cell.repro, **changes)) if changes else cell  # type: ignore[arg-type]
        seen = run(cell, tmp_path / "cell", servers=servers)
        assert living(tmp_path / "cell") == []
        assert seen.launch == "warm"
        return cell, seen

    return run_it


@pytest.mark.parametrize(
    ("script", "verdict", "signature"),
    [((one, two), *rest) for one, two, *rest in SAME],
    ids=[f"{one}-{two}" for one, two, *_ in SAME],
)
def test_the_same_verdict(warm: Warm, script: tuple[str, str], verdict: Verdict, signature: str | None) -> None:
    result = judge(*warm(*script))
    assert (result.verdict, result.signature) == (verdict, signature), result


@pytest.mark.parametrize("slug", ["ignores_signals", "thread_never_ends"])
def test_what_hangs_is_ended_at_its_deadline(warm: Warm, slug: str) -> None:
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
def test_two_ranks(warm: Warm, variant: str, verdict: Verdict) -> None:
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


def test_every_rank_has_a_log_of_its_own_and_a_flood_is_cut(warm: Warm) -> None:
    _, seen = warm("prints_200_mb")
    found = [process.log for process in seen.processes if process.role == "rank"]
    assert len(set(found)) == 2
    for log in found:
        assert log is not None
        assert log.stat().st_size <= logs.CAP
        assert log.read_text().startswith("the first line\n")
        assert logs.tail(log)[-1] == "RuntimeError: the documented failure"


@pytest.mark.slow
def test_a_server_that_was_stopped_costs_its_cell_and_no_more(
    toy_cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "_FORK_TIMEOUT", 1.0)
    cell = toy_cell("raises")
    with Servers(tmp_path / "servers") as own:
        assert judge(cell, run(cell, tmp_path / "first", servers=own)).verdict is Verdict.REPRODUCED
        (server,) = own._servers.values()
        os.kill(server.pid, signal.SIGSTOP)
        result = judge(cell, run(cell, tmp_path / "second", servers=own))
        assert result.verdict is Verdict.INFRA
        assert "does not answer" in result.reason
        assert judge(cell, run(cell, tmp_path / "third", servers=own)).verdict is Verdict.REPRODUCED
