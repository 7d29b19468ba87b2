"""The errors that TrainCheck has published: the findings of the watch in each, with a reason where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.measure.foreign_programs.programs import TRAINCHECK, Program, read_programs
from tools.measure.foreign_programs.traincheck import KEPT, Error, is_found, read_errors, results_of, run

ERRORS = read_errors()
LINES = [json.loads(line) for line in KEPT.read_text("utf-8").splitlines()]
TESTED = [program for program in read_programs(TRAINCHECK) if program.tested]
"""The mechanisms in plain torch."""
SPAWNING = ("lost_in_transmission", "clipped_apart")
"""Those with ranks, which the isolated warm interpreter would start isolated, so that nothing watches them."""
LISTED = 18
FEWEST = 11


def test_at_least_eleven_are_found() -> None:
    assert len(ERRORS) == LISTED
    assert sum(map(is_found, ERRORS)) >= FEWEST


@pytest.mark.parametrize("error", ERRORS, ids=[error.name for error in ERRORS])
def test_an_error_is_found_or_has_a_reason(error: Error) -> None:
    assert is_found(error) != bool(error.reason)
    assert [line["program"] for line in results_of(error, "fixed") if line["findings"]] == []


def test_the_watch_did_not_fail_and_the_programs_ended_well() -> None:
    assert [line["program"] for line in LINES if line["exit"] or line["failures"]] == []


def test_results_belong_to_listed_programs() -> None:
    listed = {(program.source, program.name, program.error, program.variant) for program in read_programs(TRAINCHECK)}
    assert {(line["source"], line["program"], line["error"], line["variant"]) for line in LINES} == listed


@pytest.mark.long(keep=5)
@pytest.mark.slow
@pytest.mark.parametrize("program", TESTED, ids=[program.name for program in TESTED])
def test_a_mechanism_is_found_again(program: Program, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    python: Path = request.getfixturevalue("current_python" if program.name.startswith(SPAWNING) else "warm_python")
    line = run(program, python, tmp_path)
    (kept,) = (line for line in LINES if (line["source"], line["program"]) == (program.source, program.name))
    assert (line["exit"], line["findings"], line["failures"]) == (0, kept["findings"], 0)
