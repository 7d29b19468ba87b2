"""Every ending of a script, run for real: verdict, deadline, evidence, and no process left behind."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from repros.engine import record
from repros.engine.cells import job_of, observe
from repros.engine.judge import judge
from repros.engine.launch import environ, logs, supervise
from repros.engine.launch.job import RunFolders
from repros.model import Cell, CellResult, Device, Ending, Process, Verdict
from tests.endings import ENDINGS

Play = Callable[..., CellResult]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "verdict", "signature"),
    [((first, two), *rest) for first, two, *rest in ENDINGS],
    ids=[f"{first}-{two}" for first, two, *_ in ENDINGS],
)
def test_an_ending_gives_its_verdict_and_signature(
    play: Play, tmp_path: Path, script: tuple[str, str], verdict: Verdict, signature: str | None
) -> None:
    slug, variant = script
    result = play(slug, variant)
    assert (result.verdict, result.signature) == (verdict, signature), result
    assert result.observation is not None
    assert result.observation.seconds < result.cell.repro.deadline
    assert result.observation.leftovers == 0
    record.append(tmp_path / "results.jsonl", result)
    (line,) = record.read(tmp_path / "results.jsonl")
    assert line["verdict"] == verdict
    jsonschema.validate(line, json.loads(record.JSON_SCHEMA.read_text(encoding="utf-8")))


def test_a_chain_is_complete_and_begins_with_the_outermost_exception(play: Play) -> None:
    (process,) = _ranks(play("masks_its_error"))
    assert [(link.name, link.via) for link in process.chain] == [
        ("ValueError", None),
        ("TypeError", "context"),
        ("RuntimeError", "context"),
    ]
    assert re.search(r"masks_its_error\.py:\d+ load$", process.chain[-1].frames[-1])


def test_a_signal_is_attributed_to_the_rank_that_died_with_its_stacks(play: Play) -> None:
    launcher, rank_1 = _ranks(play("dies_on_rank_1"))
    assert (launcher.rank, launcher.ending, launcher.code) == (0, Ending.EXITED, 1)
    assert (rank_1.rank, rank_1.ending, rank_1.signal) == (1, Ending.SIGNALLED, "SIGSEGV")
    assert "Segmentation fault" in rank_1.stacks
    assert "in main" in rank_1.stacks


def test_a_relaunched_rank_has_a_log_of_its_own(play: Play) -> None:
    result = play("raises_in_a_relaunched_rank")
    main, rank_1 = _ranks(result)
    assert result.observation is not None
    folder = result.observation.folder
    assert main.log != rank_1.log
    assert "rank 1 here" in logs.tail(folder, rank_1.log)
    assert "RuntimeError: the documented failure" in logs.tail(folder, rank_1.log)
    assert logs.tail(folder, main.log) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slug", "variant", "verdict"),
    [
        ("ignores_signals", "failing", Verdict.REPRODUCED),
        ("ignores_signals", "asleep", Verdict.REPRODUCED),
        ("ignores_signals", "undocumented", Verdict.DIFFERENT),
        ("thread_never_ends", "failing", Verdict.REPRODUCED),
    ],
)
def test_a_hang_is_ended_at_the_deadline(play: Play, slug: str, variant: str, verdict: Verdict) -> None:
    result = play(slug, variant)
    assert (result.verdict, result.signature) == (verdict, "hang")
    assert result.observation is not None
    assert result.cell.repro.deadline <= result.observation.seconds  # by itself it does not end at all
    (process,) = result.observation.ranks
    assert process.ending is Ending.TIMED_OUT
    assert f"{slug}.py" in process.stacks


@pytest.mark.slow
def test_a_process_that_was_stopped_from_outside_is_not_a_hang(play: Play) -> None:
    result = play("ignores_signals", "stopped")
    assert (result.verdict, result.signature) == (Verdict.INFRA, "signal SIGSTOP")


def test_a_hang_in_a_collective_shows_where_every_rank_waits(play: Play, current_python: Path) -> None:
    result = play("hangs_in_a_collective", python=current_python)
    assert (result.verdict, result.signature) == (Verdict.REPRODUCED, "hang")
    rank_0, rank_1 = _ranks(result)
    assert (rank_0.rank, rank_1.rank) == (0, 1)
    # The test of the warm launch checks the frame: on a busy machine a cold rank may still be importing torch.
    for rank in (rank_0, rank_1):
        assert rank.ending is Ending.TIMED_OUT
        assert "hangs_in_a_collective.py" in rank.stacks


def test_a_spawned_rank_gives_the_reason_and_not_its_launcher(play: Play, current_python: Path) -> None:
    result = play("raises_in_a_spawned_rank", python=current_python)
    assert result.verdict is Verdict.REPRODUCED
    assert result.reason.startswith("rank 1 ")
    launcher, *_, rank_1 = _ranks(result)
    assert launcher.chain[0].name == "torch.multiprocessing.spawn.ProcessRaisedException"
    assert rank_1.chain[0].name == "RuntimeError"


@pytest.mark.parametrize("variant", ["fixed", "aborts"])
def test_spawned_ranks_return(play: Play, current_python: Path, variant: str) -> None:
    result = play("raises_in_a_spawned_rank", variant, current_python)
    assert result.verdict is Verdict.CLEAN
    assert [(process.name, process.ending) for process in _ranks(result)] == [
        ("launcher", Ending.RETURNED),
        ("rank 0", Ending.RETURNED),
        ("rank 1", Ending.RETURNED),
    ]


def test_a_closed_connection_is_a_consequence(play: Play, current_python: Path) -> None:
    result = play("takes_its_peer_down", python=current_python)
    assert result.verdict is Verdict.REPRODUCED
    assert result.reason.startswith("rank 1 ")
    rank_0, rank_1 = _ranks(result)
    assert rank_0.ending is Ending.RAISED
    assert "onnection" in rank_0.chain[0].message
    assert rank_1.chain[0].message == "the documented failure"


def test_two_ranks_return(play: Play, current_python: Path) -> None:
    assert play("takes_its_peer_down", "fixed", current_python).verdict is Verdict.CLEAN


@pytest.mark.parametrize("variant", ["failing", "on_rank_1"])
def test_a_long_log_is_cut_to_its_head_and_tail(play: Play, variant: str) -> None:
    result = play("prints_200_mb", variant)
    assert result.verdict is Verdict.REPRODUCED
    (log,) = {process.log for process in _ranks(result) if process.ending is Ending.RAISED}
    assert log is not None
    assert log.stat().st_size <= logs.CAP
    text = log.read_text()
    assert text.startswith("the first line\n")
    assert " bytes left out ...]\n" in text
    assert "the last line" in text
    assert text.endswith("RuntimeError: the documented failure\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "verdict"),
    [("failing", Verdict.REPRODUCED), ("fixed", Verdict.CLEAN), ("foreign", Verdict.CLEAN)],
)
def test_a_grandchild_is_ended_and_counted(play: Play, variant: str, verdict: Verdict) -> None:
    result = play("leaves_a_grandchild", variant)  # `play` checks that no process is left
    assert result.verdict is verdict
    assert result.observation is not None
    assert result.observation.leftovers == 1
    assert result.observation.seconds < result.cell.repro.deadline


@pytest.mark.slow
def test_a_rank_may_run_a_little_longer_than_the_main_process(play: Play) -> None:
    result = play("outlived_by_a_rank", "fixed")
    assert result.verdict is Verdict.CLEAN
    assert [process.ending for process in _ranks(result)] == [Ending.RETURNED, Ending.RETURNED]


@pytest.mark.slow
def test_a_rank_that_outlives_a_main_process_that_succeeded_is_a_hang(play: Play) -> None:
    result = play("outlived_by_a_rank")
    assert (result.verdict, result.signature) == (Verdict.DIFFERENT, "hang")
    main, rank_1 = _ranks(result)
    assert (main.ending, rank_1.ending) == (Ending.RETURNED, Ending.TIMED_OUT)
    assert "in main" in rank_1.stacks
    assert result.observation is not None
    assert result.observation.leftovers == 0


@pytest.mark.slow
def test_a_rank_gets_a_grace_period_after_the_main_process_failed(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "RANK_GRACE", 1.0)
    result = play("outlived_by_a_rank", "raised")
    assert result.verdict is Verdict.REPRODUCED
    assert [process.ending for process in _ranks(result)] == [Ending.RAISED, Ending.STOPPED]


@pytest.mark.slow
def test_a_run_can_be_stopped_from_outside(toy_cell: Callable[..., Cell], tmp_path: Path) -> None:
    cell = toy_cell("ignores_signals")
    cell = replace(cell, repro=replace(cell.repro, deadline=600))
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    started = time.monotonic()
    result = judge(cell, observe(cell, tmp_path / "cell", stop))
    assert time.monotonic() - started < cell.repro.deadline / 10
    assert (result.verdict, result.reason) == (Verdict.INFRA, "interrupted")


@pytest.mark.slow
def test_the_cell_folder_may_be_relative(
    toy_cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cell = toy_cell("leaves_a_grandchild", "fixed")
    seen = observe(cell, Path("a cell"))
    assert seen.leftovers == 1
    assert judge(cell, seen).verdict is Verdict.CLEAN


def test_an_existing_folder_is_never_overwritten(toy_cell: Callable[..., Cell], tmp_path: Path) -> None:
    seen = observe(toy_cell("raises"), tmp_path)
    assert seen.broken is not None
    assert str(tmp_path) in seen.broken
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_that_cannot_be_started_is_infra(toy_cell: Callable[..., Cell], tmp_path: Path) -> None:
    cell = toy_cell("raises", python=Path("/nowhere/bin/python"))
    result = judge(cell, observe(cell, tmp_path / "cell"))
    assert result.verdict is Verdict.INFRA
    assert "/nowhere/bin/python" in result.reason


def test_an_interpreter_that_does_not_load_the_hook_is_infra(toy_cell: Callable[..., Cell], tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o700)
    cell = toy_cell("raises", python=python)
    result = judge(cell, observe(cell, tmp_path / "cell"))
    assert (result.verdict, result.observation.processes if result.observation else None) == (Verdict.INFRA, ())


def test_a_cell_does_not_inherit_variables_that_make_it_part_of_another_job(
    toy_cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = {
        "RANK",
        "SLURM_PROCID",
        "TORCHELASTIC_RUN_ID",
        "PL_GLOBAL_SEED",
        "REPROS_SIM",
        "PYTHONHOME",
        # Of a rank that mpirun started.
        "OMPI_COMM_WORLD_RANK",
        "OMPI_MCA_ess_base_vpid",
        "PMIX_RANK",
    }
    # How the machine's MPI starts: mpi4py, which Lightning imports, ends the process without.
    kept = {"OF_THE_USER", "OMPI_MCA_plm", "OMPI_MCA_btl_vader_single_copy_mechanism", "PMIX_MCA_gds"}
    for name in foreign | kept:
        monkeypatch.setenv(name, "1")
    found = environ.for_run(job_of(toy_cell("raises")), RunFolders(tmp_path, tmp_path))
    assert {found[name] for name in kept} == {"1"}
    assert "REPROS_CELL" in found
    assert not foreign & set(found)


@pytest.mark.parametrize("gpus", [("3",), ("GPU-8932f937", "GPU-46a1"), ("MIG-c7384736-a75d",)])
def test_a_cuda_cell_sees_the_gpus_that_it_was_given_and_another_cell_none(
    gpus: tuple[str, ...], toy_cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def visible(**changes: object) -> str | None:
        cell = replace(toy_cell("raises"), **changes)  # type: ignore[arg-type]
        return environ.for_run(job_of(cell), RunFolders(tmp_path, tmp_path)).get("CUDA_VISIBLE_DEVICES")

    assert visible(device=Device.CUDA, gpus=gpus) == ",".join(gpus)
    assert (visible(device=Device.CPU, gpus=gpus), visible(device=Device.SIM, gpus=gpus)) == ("", None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,6")
    assert visible(device=Device.CUDA, processes=2) == "5,6", "one that was given none takes the user's"


def test_a_record_line_has_no_environment_variables(play: Play, tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    result = play("raises", "undecodable")
    record.append(out, result)
    (line,) = out.read_text("utf-8").splitlines()
    assert json.loads(line)["verdict"] == "different"
    assert "PATH" not in line


def _ranks(result: CellResult) -> list[Process]:
    assert result.observation is not None
    return list(result.observation.ranks)
