"""The errors that TrainCheck has published: what the watch says of each, with a reason where it is silent."""

from __future__ import annotations

import json

import pytest

from tests.tools.foreign_programs.programs import TRAINCHECK, read_programs
from tests.tools.foreign_programs.traincheck import KEPT, Error, is_found, read_errors, results_of

ERRORS = read_errors()
LINES = [json.loads(line) for line in KEPT.read_text("utf-8").splitlines()]
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
