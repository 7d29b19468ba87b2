"""The bisections in the evidence: their boundaries follow from their answers, and headers agree with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repros.engine.environment import locked_environment
from repros.engine.stacks import load_stacks
from repros.model import Cell, Device, Environment, ExpectedOutcome
from repros.model.settings import EVIDENCE
from repros.scripts.bisect.search import Answer, Boundaries, Boundary, scan, search
from tests.package_catalogue import load
from tests.scripts.bisect.askers import Wide

FILES = sorted((EVIDENCE / "bisections").glob("*.json"))

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def read_record(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def replay(kept: dict[str, Any], find: Any) -> Boundaries:
    """Search or scan the recorded answers; asking another release is a KeyError."""
    versions = list(kept["candidates"])
    start = versions.index(kept["start"])
    boundaries: Boundaries = find(
        range(start),
        start,
        range(start + 1, len(versions)),
        Wide(lambda at: Answer(kept["answers"][versions[at]]["answer"])),
    )
    return boundaries


def boundary_record(kept: dict[str, Any], boundary: Boundary | None) -> dict[str, Any]:
    versions = [*kept["candidates"]]
    assert boundary is not None
    return {
        "affected": versions[boundary.affected],
        "free": None if boundary.free is None else versions[boundary.free],
        "unknown": [versions[at] for at in boundary.unknown],
    }


def test_the_first_failures_have_a_bisection() -> None:
    kept = {(read_record(file)["repro"], read_record(file)["package"]) for file in FILES}
    assert kept >= {("RPR-0001", "lightning"), ("RPR-0002", "accelerate"), ("RPR-0004", "torch")}


@pytest.mark.of_each_script
@every_file
def test_a_search_of_the_answers_gives_the_boundaries(file: Path) -> None:
    kept = read_record(file)
    found = replay(kept, search)
    assert (boundary_record(kept, found.begins), boundary_record(kept, found.ends)) == (kept["begins"], kept["ends"])


@pytest.mark.of_each_script
@every_file
def test_a_scan_of_all_answers_agrees_with_the_search(file: Path) -> None:
    kept = read_record(file)
    if set(kept["answers"]) != set(kept["candidates"]):
        pytest.skip("not every candidate was asked")
    found = replay(kept, scan)
    assert (boundary_record(kept, found.begins), boundary_record(kept, found.ends)) == (kept["begins"], kept["ends"])


@pytest.mark.of_each_script
@every_file
def test_the_header_agrees_with_every_answer_or_the_file_explains_why_not(file: Path) -> None:
    kept = read_record(file)
    repro = load().find(kept["repro"])
    variant = repro.variant(kept["variant"])
    assert variant is not None
    contradicted = []
    for version, answer in kept["answers"].items():
        # An answer names the packages that the header named then; the others were those of the stack.
        versions = {**locked_environment(load_stacks()[kept["stack"]]).versions, **answer["versions"]}
        environment = Environment(kept["stack"], Path(), "3.11.7", versions)
        cell = Cell(repro, variant, kept["strategy"], Device(kept["device"]), environment, repro.processes)
        fails = cell.expectation.outcome is ExpectedOutcome.FAILS
        if answer["answer"] != Answer.UNKNOWN and fails is not (answer["answer"] == Answer.YES):
            contradicted.append(version)
    assert bool(contradicted) is bool(kept.get("explanation")), contradicted
