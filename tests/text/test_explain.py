"""The explanation of a disagreeing cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

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


CELL = Path("runs", "cell")
PRIVATE = Path("/nowhere/toys/toy_0001.py")


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    cell = tmp_path / CELL
    cell.mkdir(parents=True)
    (cell / "main.log").write_text("".join(f"line {number}\n" for number in range(40)), encoding="utf-8")
    (cell / "log.txt").write_bytes(b"garbage \xff\n")
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
    seen = factories.observation(*processes, folder=logs / CELL, seconds=61.25)
    return CellResult(cell, Verdict.DIFFERENT, reason, None, seen)


def test_text(logs: Path, snapshot: SnapshotAssertion) -> None:
    chain = (
        factories.raised(
            "Please call `iter(combined_loader)` first.",
            frames=("/scripts/toy.py:20 main", f"{SITE}/lightning/loops/fetchers.py:31 reset"),
        ),
        factories.raised("one\ntwo", "torch.distributed.DistBackendError", via="context"),
        factories.raised("x" * 500, "builtins.KeyError", via="cause"),
    )  # fmt: skip
    raised = factories.process(0, Ending.RAISED, chain=chain, at=3.21, log=logs / CELL / "main.log")
    waits = factories.process(1, Ending.TIMED_OUT, at=60.0, stacks=STACKS, log=logs / CELL / "log.txt")
    contrast = result(
        logs, factories.process(None, Ending.EXITED, code=3), outcome=ExpectedOutcome.PASSES, contrast=True
    )
    unavailable = CellResult(factories.cell(repro=factories.repro(path=PRIVATE)), Verdict.UNAVAILABLE, "no GPU here")
    parts = [explain(result(logs, raised, waits, reason="rank 0 ended otherwise: RuntimeError"))]
    parts += [explain(contrast), explain(unavailable)]
    for ending in Ending:
        seen = factories.observation(factories.process(0, ending), leftovers=2)
        text = explain(CellResult(factories.cell(), Verdict.DIFFERENT, "why", None, seen))
        parts.append("\n".join(line for line in text.splitlines() if line.startswith("          ")))
    assert snapshot == "\n\n".join(parts) + "\n"


def test_a_fix_that_exited_and_left_processes_behind(logs: Path) -> None:
    exited = factories.process(None, Ending.EXITED, code=3)
    signalled = factories.process(1, Ending.SIGNALLED, signal="SIGSEGV", stacks=STACKS)
    text = explain(result(logs, exited, signalled, outcome=ExpectedOutcome.PASSES))
    assert "lightning>=2.1,<2.4" in text
    assert "1 of 2 ranks" in text
    (launcher,) = re.findall(r"^          launcher: (.*)", text, re.MULTILINE)
    (rank,) = re.findall(r"^          rank 1: (.*)", text, re.MULTILINE)
    assert launcher.endswith("3")
    assert rank.endswith("SIGSEGV")
    assert "              torch/distributed/distributed_c10d.py:4810 barrier\n" in text


def test_a_fix_outside_the_range_on_the_users_own_interpreter(logs: Path) -> None:
    cell = factories.cell(
        repro=factories.repro(path=PRIVATE),
        variant=factories.variant(affected=factories.conditions("lightning>=99")),
        environment=factories.environment("/home/me/my env/bin/python"),
    )
    text = explain(CellResult(cell, Verdict.INFRA, "no disk", None, factories.observation()))
    assert "lightning>=99; " in text
    assert text.endswith("--python '/home/me/my env/bin/python' --catalogue /nowhere/toys/toy_0001.py")
