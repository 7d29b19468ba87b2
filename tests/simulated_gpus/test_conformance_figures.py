"""The kept figures of `nox -s conformance`: every difference has a reason, and the page shows the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repros.engine.stacks import load_stacks
from repros.simulated_gpus.tools.conformance import figures, known
from repros.simulated_gpus.tools.conformance.entry import Known
from repros.simulated_gpus.tools.conformance.run import Found
from repros.simulated_gpus.tools.json_rows import dumps_by_row

PAGE = Path(__file__).parents[2] / "repros" / "simulated_gpus" / "README.md"
KEPT = figures.load_all()
OF_CUDA = figures.load_all("cuda")
OF_TYPES = figures.load_all("types")
ACCEPTED = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in (Path(figures.__file__).parents[1] / "kernel_types" / "accepted").glob("*.json")
}


def version(kept: dict[str, Any]) -> str:
    return str(kept["torch"]).partition("+")[0]


def reference(kept: dict[str, Any]) -> str:
    return f"{version(kept)} {figures.reference_name(kept)}"


def test_each_claimed_version_was_run_on_a_stack_of_the_matrix() -> None:
    stacks = {str(combination) for stack in load_stacks().values() for combination in stack.requirements}
    assert {"2.0.1", "2.1.2", "2.4.1", "2.6.0", "2.9.1", "2.13.0", "2.15.0"} <= {version(kept) for kept in KEPT}
    assert {f"torch=={version(kept)}" for kept in [*KEPT, *OF_CUDA, *OF_TYPES]} <= stacks


@pytest.mark.parametrize("kept", [*KEPT, *OF_CUDA, *OF_TYPES], ids=reference)
def test_every_difference_has_a_reason_and_no_sample_ended_a_process(kept: dict[str, Any]) -> None:
    found = figures.differences(kept)
    assert known.uncovered(found, known.entries_for(kept["torch"], figures.reference_name(kept))) == []
    passed, sim = figures.total(kept)
    assert passed - sim == sum(combination.wrong for combination in found)
    assert not [combination for combination in found if "process" in combination.first or combination.first == "hung"]


@pytest.mark.parametrize("entry", known.KNOWN, ids=lambda entry: f"{entry.operator} {entry.against}")
def test_every_known_entry_covers_a_difference_on_some_version(entry: Known) -> None:
    kept_runs = {"cpu": KEPT, "cuda": OF_CUDA, "types": OF_TYPES}[entry.against]
    of_version = [kept for kept in kept_runs if entry in known.entries_for(kept["torch"], entry.against)]
    if not of_version:
        pytest.skip("no figures are kept of the releases that the entry names")
    runs = [figures.differences(kept) for kept in of_version]
    assert any(entry.covers(*combination[:3]) for found in runs for combination in found)


def test_cuda_s_own_code_takes_what_the_list_of_types_is_too_strict_about() -> None:
    denied = [entry for entry in known.KNOWN if entry.forms == {figures.DENIED}]
    taken = {(name, dtype) for kept in ACCEPTED.values() for name, dtypes in kept.items() for dtype in dtypes}
    ran = {(one.operator, one.dtype) for kept in OF_TYPES for one in figures.differences(kept) if one.first == "runs"}
    claimed = {(entry.operator, dtype) for entry in denied for dtype in entry.dtypes} & ran
    # They ask for a newer GPU, or for numbers that no kernel has computed on the stub.
    assert {name for name, _ in claimed - taken} <= {"torch._scaled_mm", "torch._scaled_mm_v2", "multinomial"}


@pytest.mark.parametrize("kept", OF_TYPES, ids=reference)
def test_nine_of_ten_types_that_only_cuda_has_run(kept: dict[str, Any]) -> None:
    ran, pairs = (int(part) for part in figures.of_form(kept, figures.ONLY_CUDA).split(" of "))
    assert ran >= 0.89 * pairs


def test_the_page_shows_these_figures() -> None:
    text = PAGE.read_text(encoding="utf-8")
    command = "python -m repros.simulated_gpus.tools.conformance.figures repros/simulated_gpus/README.md"
    remedy = f"the figures have changed; run: {command}"
    assert figures.fill_page(text) == text, remedy


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="0 times"):
        figures.fill_page("text")


def test_figures_are_written_one_line_per_count_and_read_back() -> None:
    found = [
        Found("mul", "bool", "out", 4, 0),
        Found("add", "bool", "out", 3, 2, "what"),
        Found("sub", "bool", "out", 0, 0),
    ]
    made = figures.make_figures("2.99.0+cpu", found)
    text = dumps_by_row(made)
    assert json.loads(text) == made
    assert figures.total(made) == (7, 5)
    assert made["operators"] == 2
    assert '    "out bool": {"cpu": 7, "sim": 5}\n' in text
    assert figures.summary(made).splitlines()[-1].strip() == "0 of 1 differences are known"
