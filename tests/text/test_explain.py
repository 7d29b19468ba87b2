"""The explanation of a disagreeing cell, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.model import CellResult, Ending, ExpectedOutcome, Process, Verdict
from repros.text.explain import explain
from tests import factories

SITE = "/env/lib/python3.11/site-packages"
STACKS = """\
Thread 0x00007f10 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait

Current thread 0x00007f11 (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 4810 in barrier
  File "/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/scripts/toy.py", line 12 in main
  File "/scripts/toy.py", line 20 in <module>

Extension modules: numpy.core (total: 1)
"""


PRIVATE = Path("/nowhere/toys/toy_0001.py")
AGAIN = "repros run RPR-0001 --variant failing --strategy ddp --device cpu"


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.log").write_text("".join(f"line {number}\n" for number in range(40)), encoding="utf-8")
    (tmp_path / "log.txt").write_bytes(b"garbage \xff\n")
    return tmp_path


def result(
    logs: Path,
    *processes: Process,
    outcome: ExpectedOutcome = ExpectedOutcome.FAILS,
    reason: str = "why",
    contrast: bool = False,
) -> CellResult:
    cell = factories.cell(
        outcome,
        repro=factories.repro(path=logs / "toy.py", packages=("lightning",)),
        variant=factories.variant(
            "failing" if outcome is ExpectedOutcome.FAILS else "fixed",
            outcome,
            affected=factories.conditions("lightning<2.4,>=2.1"),
            contrast=contrast,
        ),
    )
    seen = factories.observation(*processes, folder=logs / "runs" / "cell", seconds=61.25)
    return CellResult(cell, Verdict.DIFFERENT, reason, None, seen)


def test_a_rank_that_raised_and_a_rank_that_waits(logs: Path) -> None:
    chain = (
        factories.raised(
            "Please call `iter(combined_loader)` first.",
            frames=("/scripts/toy.py:20 main", f"{SITE}/lightning/loops/fetchers.py:31 reset"),
        ),
        factories.raised("one\ntwo", "torch.distributed.DistBackendError", via="context"),
        factories.raised("x" * 500, "builtins.KeyError", via="cause"),
    )  # fmt: skip
    raised = factories.process(0, Ending.RAISED, chain=chain, at=3.21, log=logs / "main.log")
    waits = factories.process(1, Ending.TIMED_OUT, at=60.0, stacks=STACKS, log=logs / "log.txt")
    assert (
        explain(result(logs, raised, waits, reason="rank 0 ended otherwise: RuntimeError"))
        == f"""\
RPR-0001 failing ddp cpu current: different
  rank 0 ended otherwise: RuntimeError

title     A toy
script    toy.py
expected  fails with RuntimeError: the documented failure
          affected: lightning>=2.1,<2.4; here: torch 2.13.0+cpu, lightning 2.1.3
          variant: does it
observed  2 of 2 ranks, launched cold, in 61.2 s (deadline 60 s)
          rank 0: raised after 3.2 s
            RuntimeError: Please call `iter(combined_loader)` first.
              at lightning/loops/fetchers.py:31 reset
            while handling torch.distributed.DistBackendError: one
              two
            caused by KeyError: {"x" * 400} [...]
          rank 1: still running after 60.0 s, at the deadline
            in, innermost first:
              torch/distributed/distributed_c10d.py:4810 barrier
              torch/distributed/c10d_logger.py:83 wrapper
              /scripts/toy.py:12 main
              /scripts/toy.py:20 <module>
log of rank 0, its last 15 lines:
{"".join(f"  | line {number}{chr(10)}" for number in range(25, 40))}\
log of rank 1, its last 1 line:
  | garbage \N{REPLACEMENT CHARACTER}
all logs  runs/cell
again     {AGAIN} --stack current --catalogue toy.py"""
    )


def test_a_contrast_is_no_fix(logs: Path) -> None:
    text = explain(
        result(logs, factories.process(None, Ending.EXITED, code=3), outcome=ExpectedOutcome.PASSES, contrast=True)
    )
    assert "expected  returns, since the failure does not occur under its conditions\n" in text


def test_a_fix_that_exited_and_left_processes_behind(logs: Path) -> None:
    exited = factories.process(None, Ending.EXITED, code=3)
    signalled = factories.process(1, Ending.SIGNALLED, signal="SIGSEGV", stacks=STACKS)
    text = explain(result(logs, exited, signalled, outcome=ExpectedOutcome.PASSES))
    assert (
        "expected  returns, since this variant is a fix\n"
        "          affected without it: lightning>=2.1,<2.4; here:" in text
    )
    assert "observed  1 of 2 ranks, launched cold, in 61.2 s" in text
    assert "          launcher: exited after 1.0 s with code 3\n" in text
    assert "          rank 1: ended after 1.0 s by SIGSEGV\n            in, innermost first:\n" in text
    assert "log of launcher, rank 1: empty\n" in text


def test_a_fix_outside_the_range_on_the_users_own_interpreter(logs: Path) -> None:
    cell = factories.cell(
        repro=factories.repro(path=PRIVATE),
        variant=factories.variant(affected=factories.conditions("lightning>=99")),
        environment=factories.environment("/home/me/my env/bin/python"),
    )
    text = explain(CellResult(cell, Verdict.INFRA, "no disk", None, factories.observation()))
    assert (
        "expected  returns, since these versions are not affected\n"
        "          affected: lightning>=99; here: torch" in text
    )
    assert text.endswith("--python '/home/me/my env/bin/python' --catalogue /nowhere/toys/toy_0001.py")


def test_every_ending_has_a_text() -> None:
    for ending in Ending:
        seen = factories.observation(factories.process(0, ending), leftovers=2)
        text = explain(CellResult(factories.cell(), Verdict.DIFFERENT, "why", None, seen))
        assert "          rank 0: " in text
        assert "          2 further processes left running, ended by the engine\n" in text


def test_an_unavailable_cell_has_no_observation() -> None:
    text = explain(CellResult(factories.cell(repro=factories.repro(path=PRIVATE)), Verdict.UNAVAILABLE, "no GPU here"))
    assert text == (
        "RPR-0001 failing ddp cpu current: unavailable\n"
        "  no GPU here\n"
        "\n"
        "title     A toy\n"
        "script    /nowhere/toys/toy_0001.py\n"
        "expected  fails with RuntimeError: the documented failure\n"
        "          affected: every release; here: torch 2.13.0+cpu\n"
        "          variant: does it\n"
        "again     repros run RPR-0001 --variant failing --strategy ddp --device cpu --stack current "
        "--catalogue /nowhere/toys/toy_0001.py"
    )
