"""Healthy programs that nobody here wrote give no finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.measure.foreign_programs.programs import Program, read_programs
from tools.measure.foreign_programs.under_watch import KEPT, run

LINES = [json.loads(line) for line in KEPT.read_text("utf-8").splitlines()]
FEWEST = 100
DEFECTIVE = {(program.source, program.name) for program in read_programs() if program.defect}
"""Programs with a defect of their own, which the watch names."""
SHORT = [program for program in read_programs() if program.tested]


def test_the_programs_that_trained_gave_no_finding() -> None:
    trained = [line for line in LINES if line["exit"] == 0 and line["trained"]]
    healthy = [line for line in trained if (line["source"], line["program"]) not in DEFECTIVE]
    assert len(healthy) >= FEWEST
    assert [line["program"] for line in LINES if line["failures"]] == []
    known = {(line["source"], line["program"]) for line in trained} & DEFECTIVE
    assert {(line["source"], line["program"]) for line in LINES if line["findings"]} == known


def test_results_belong_to_listed_programs() -> None:
    listed = {(program.source, program.name, program.command) for program in read_programs()}
    assert {(line["source"], line["program"], line["command"]) for line in LINES} <= listed


@pytest.mark.long(keep=1)
@pytest.mark.slow
@pytest.mark.parametrize("program", SHORT, ids=[program.name for program in SHORT])
def test_a_short_one_gives_none(program: Program, current_python: Path, tmp_path: Path) -> None:
    line = run(program, current_python, tmp_path)
    assert (line["exit"], line["findings"], line["failures"]) == (0, [], 0)
    assert line["trained"] == program.processes
