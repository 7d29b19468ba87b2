"""The kept counts of outcomes that are CUDA's word for word: complete, explained, and shown by the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from repros.engine.stacks import load_stacks
from repros.simulated_gpus.tools.placement import agreement
from repros.simulated_gpus.tools.placement.differences import explanation
from repros.simulated_gpus.tools.placement.recorded import FILES, covers, is_stub, load, torch_version
from repros.simulated_gpus.tools.placement.table import LINES

PAGE = Path(__file__).parents[2] / "repros" / "simulated_gpus" / "README.md"
KEPT = {agreement.release(made["torch"]): made for made in agreement.load_all()}
RECORDS = {agreement.release(recorded["torch"]): recorded for recorded in map(load, FILES) if is_stub(recorded)}


def test_every_stack_s_torch_was_compared() -> None:
    stacks = {str(requirement) for stack in load_stacks().values() for requirement in stack.requirements}
    assert {f"torch=={torch}" for torch in KEPT} == {known for known in stacks if known.startswith("torch==")}
    assert KEPT.keys() == RECORDS.keys()


@pytest.mark.parametrize("torch", KEPT)
def test_each_count_covers_the_table_of_today_and_each_difference_has_a_reason(torch: str) -> None:
    made, recorded = KEPT[torch], RECORDS[torch]
    covered = {line.name for line in LINES if covers(recorded, line)}
    assert made["lines"] == len(covered)
    assert made["same"] == len(covered) - len(made["different"])
    assert made["different"].keys() <= covered
    assert {name: pair["cuda"] for name, pair in made["different"].items()} == {
        name: recorded["observed"][name] for name in made["different"]
    }
    assert [name for name in made["different"] if not explanation(name, torch_version(made))] == []


def test_the_page_shows_these_counts() -> None:
    text = PAGE.read_text(encoding="utf-8")
    remedy = "run: python -m repros.simulated_gpus.tools.placement.agreement --page repros/simulated_gpus/README.md"
    assert agreement.fill_page(text) == text, f"the counts have changed; {remedy}"


def test_an_outcome_in_other_words_is_counted_as_different() -> None:
    recorded: dict[str, Any] = {
        "torch": "2.15.0+cu132",
        "name": "CUDA stub",
        "observed": {"mm": {"error": "RuntimeError: one"}, "add_scalar": {"devices": ["D:0"]}},
    }
    assert agreement.compare(recorded, recorded)["different"] == {}
    other = {**recorded, "observed": {**recorded["observed"], "mm": {"error": "RuntimeError: two"}}}
    made = agreement.compare(recorded, other)
    assert (made["lines"], made["refused"], made["same"]) == (2, 1, 1)
    assert made["different"] == {"mm": {"cuda": {"error": "RuntimeError: one"}, "sim": {"error": "RuntimeError: two"}}}
