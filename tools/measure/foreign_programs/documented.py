"""Run programs that show a failure of the catalogue: code of those who reported it, as posted and with what helps.

Each runs with the releases of a stack of the catalogue, and does there what the variant of the catalogue's own script
does: it fails with the documented error, its ranks print different numbers, or it runs.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from tools.measure.foreign_programs.place import prepare
from tools.measure.foreign_programs.programs import Program
from tools.measure.foreign_programs.simulated import Ended, PreparedProgram, identify

KEPT = Path(__file__).parents[3] / "tests/simulate/documented.jsonl"
"""The results that the table in `docs/simulate.md` shows."""
DEADLINE = 300
"""Seconds for one program on a quiet machine."""
_DEVICE = re.compile(r", device='cuda:\d+'")
_LINE_OF_RANK = re.compile(r"^(\d+) (tensor.*)$", re.MULTILINE)


def run(program: Program, python: Path, sources: Path, deadline: int = DEADLINE) -> dict[str, Any]:
    """Run a program on simulated GPUs; return the line to keep."""
    with tempfile.TemporaryDirectory() as folder:
        place = prepare(program, python, sources, Path(folder, "prepared"))
        here = PreparedProgram(program, python, Path(folder), place, deadline).run(on_gpus=True)
    outcome, error = judge(program, here)
    return {
        **identify(program, python, sources),
        "repro": program.repro,
        "variant": program.variant,
        "stack": program.stack,
        "exit": here.code,
        "on_device": here.on_device,
        "outcome": outcome,
        "error": error,
        "seconds": round(here.seconds, 1),
    }


def judge(program: Program, ended: Ended) -> tuple[str, str]:
    """Return what came of a program, and its error: `fails` as documented, `runs`, or `fails otherwise`."""
    if ended.code:
        lines = (*ended.errors, *(line.removeprefix("E ").strip() for line in ended.output.splitlines()))  # pytest's
        found = [line for line in lines if program.says and program.says in line]
        return ("fails", found[0]) if found else ("fails otherwise", ended.errors[-1])
    if program.says:
        return "runs", ""
    printed = numbers_of_ranks(ended.output)
    if len(printed) != program.gpus:
        return "fails otherwise", f"the numbers of {len(printed)} ranks of {program.gpus} were printed"
    return ("runs", "") if len(set(printed.values())) == 1 else ("fails", "the ranks print different numbers")


def numbers_of_ranks(output: str) -> dict[str, tuple[str, ...]]:
    """Return the tensors that each rank printed behind its number, without their devices."""
    found: dict[str, list[str]] = {}
    for rank, tensor in _LINE_OF_RANK.findall(output):
        found.setdefault(rank, []).append(_DEVICE.sub("", tensor))
    return {rank: tuple(tensors) for rank, tensors in found.items()}
