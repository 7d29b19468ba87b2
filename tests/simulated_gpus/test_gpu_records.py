"""The second half of the GPU tool: what it takes into the repository, and what it refuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from repros.engine import evidence, record
from repros.engine.judge import judge
from repros.model import Device, Ending, Verdict
from repros.simulated_gpus.tools.gpu import files, operators
from tests import factories
from tools.measure.gpu import __main__ as tool
from tools.measure.gpu import cells, compare, take

ABOUT: dict[str, Any] = {
    "name": "NVIDIA H200",
    "driver": "580.1",
    "torch": "2.11.0+cu130",
    "python": "3.12.3",
    "date": "2026-11-21",
    "versions": {"torch": "2.11.0+cu130", "lightning": "2.6.1"},
}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return a recording with one cell that failed as documented."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    files.write(folder / "about.json", ABOUT)
    files.write(folder / "memory.json", {"name": ABOUT["name"], "observed": {}})
    files.write(folder / "placement.json", {"torch": ABOUT["torch"], "name": ABOUT["name"], "observed": {}})
    cell = factories.cell(
        device=Device.CUDA,
        strategy="fused_adamw",
        environment=factories.environment("/usr/bin/python3", stack=None),
        repro=factories.repro("RPR-0004"),
    )
    failed = factories.process(ending=Ending.RAISED, chain=(factories.raised(),))
    record.append(folder / "cells.jsonl", judge(cell, factories.observation(failed)))
    return folder


def test_a_gpu_is_named_after_its_torch() -> None:
    assert take.slug(ABOUT) == "nvidia-h200-torch-2.11.0"


def test_a_recording_becomes_evidence_of_the_tier_cuda(recording: Path, tmp_path: Path) -> None:
    take.take(recording, tmp_path)

    (measurement,) = evidence.read(tmp_path / take.EVIDENCE).values()
    assert str(measurement.unit) == "RPR-0004 fused_adamw cuda nvidia-h200-torch-2.11.0"
    assert measurement.variants["failing"].verdict is Verdict.REPRODUCED
    assert (tmp_path / take.RECORDS / "nvidia-h200-torch-2.11.0" / "memory.json").exists()
    assert (tmp_path / take.TABLES / "nvidia-h200-torch-2.11.0.json").exists()


@pytest.mark.parametrize("name", ["Simulated NVIDIA H200", "CUDA stub"])
def test_what_is_no_gpu_is_refused(recording: Path, tmp_path: Path, name: str) -> None:
    files.write(recording / "about.json", ABOUT | {"name": name})

    with pytest.raises(files.RefusedError, match="no GPU"):
        take.take(recording, tmp_path)
    assert not (tmp_path / "repros").exists()


def test_on_simulated_gpus_the_cells_are_those_for_sim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROS_SIM", "cuda")
    assert cells.device_of_the_cells() is Device.SIM
    monkeypatch.delenv("REPROS_SIM")
    assert cells.device_of_the_cells() is Device.CUDA


def test_a_folder_without_a_recording_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        tool.main(["take", str(tmp_path)])
    assert ended.value.code == 2
    assert "holds no recording" in capsys.readouterr().err


def test_without_a_gpu_nothing_else_is_tried(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("REPROS_SIM", raising=False)
    assert tool.main(["record", "--out", str(tmp_path)]) == 2
    assert capfd.readouterr().out.startswith("about: ended")
    assert not list(tmp_path.iterdir())


def test_a_torn_record_of_operators_keeps_its_whole_parts(tmp_path: Path) -> None:
    whole = gzip.compress((json.dumps({"operator": "add"}) + "\n").encode())
    path = tmp_path / operators.NAME
    path.write_bytes(whole + gzip.compress(b'{"operator": "mul"}\n')[:-9])
    assert [line["operator"] for line in operators.read(path)][:1] == ["add"]


@pytest.mark.parametrize("folder", sorted((take.ROOT / take.RECORDS).iterdir()), ids=lambda folder: folder.name)
def test_a_gpus_record_was_compared_and_each_difference_has_a_reason(folder: Path) -> None:
    real = compare.read(folder, take.ROOT / take.TABLES / f"{folder.name}.json")
    kept = files.read(folder / compare.KEPT)
    found = evidence.read(take.ROOT / take.EVIDENCE)
    measured = [each for unit, each in found.items() if unit.stack == folder.name]
    of_both = kept.pop("cells")  # those that simulated GPUs have as well
    assert not [result for line in measured for result in line.variants.values() if result.verdict.disagrees]
    assert 0 < of_both["same"] == of_both["compared"] <= sum(len(line.variants) for line in measured)
    assert {part: made["compared"] for part, made in kept.items()} == {part: len(seen) for part, seen in real.items()}
    for part, made in kept.items():
        assert made["same"] == made["compared"] - sum(made["different"].values())
        assert made["different"].keys() <= compare.REASONS[part].keys()
        names = {name.split(" ")[0] if part == "operators" else name for name in real[part]}
        assert made["different"].keys() <= names


def test_no_reason_is_left_that_no_difference_has() -> None:
    kept = [files.read(folder / compare.KEPT) for folder in (take.ROOT / take.RECORDS).iterdir()]
    different = {(part, name) for made in kept for part, one in made.items() for name in one["different"]}
    assert {(part, name) for part, reasons in compare.REASONS.items() for name in reasons} == different


def test_the_page_shows_the_comparisons() -> None:
    text = (take.ROOT / compare.PAGE).read_text("utf-8")
    assert compare.fill_page(text) == text, "the page is out of date; run: python -m tools.measure.gpu compare DIR"


def test_what_belongs_to_one_card_is_no_difference() -> None:
    real = {"surface": {"repr": {"value": "NVIDIA H200, uuid=b6e7c911-47bf, L2"}, "count": {"value": 1}}}
    simulated = {"surface": {"repr": {"value": "Simulated NVIDIA H200, uuid=0000, L2"}, "count": {"value": 2}}}
    made = compare.compare(real, simulated)
    assert made == {"surface": {"compared": 2, "same": 1, "different": {"count": 1}}}


def test_a_simulated_recording_of_another_torch_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files.write(tmp_path / "memory.json", {"torch": "1.0", "observed": {}})
    with pytest.raises(SystemExit) as ended:
        tool.main(["compare", str(tmp_path)])
    assert ended.value.code == 2
    assert "has no GPU's record with torch 1.0" in capsys.readouterr().err


def test_a_folder_without_a_part_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(files.RefusedError, match="is no part of a recording"):
        compare.read(tmp_path, tmp_path / "placement.json")
