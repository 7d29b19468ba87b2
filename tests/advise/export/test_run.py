"""Exported scripts, run as the readers of a report run them: in an environment with torch, without this project."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from repros.advise.export.pins import Pins, pins_of_stack
from repros.advise.export.script import export_minimal, export_script, script_file_name
from repros.engine.stacks import load_stacks
from repros.model import Device, ExpectedOutcome
from tests.advise.export.foreign import foreign_environ
from tests.package_catalogue import load

pytestmark = pytest.mark.slow

ENDED_RANKS = Path(__file__).parent / "toys/ended_ranks"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("id_", "variant", "ends"), [("RPR-0005", "failing", 1), ("RPR-0005", "fixed", 0), ("RPR-0001", "failing", 1)]
)
def test_a_script_runs_in_an_environment_without_this_project(
    id_: str, variant: str, ends: int, tmp_path: Path, current_python: Path
) -> None:
    repro = load().find(id_)
    script = tmp_path / script_file_name(repro)
    script.write_text(export_script(repro, pins_of_stack(repro, load_stacks()["current"]), variant), "utf-8")
    done = subprocess.run(
        [current_python, "-P", script.name], cwd=tmp_path, env=foreign_environ() | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == ends, done.stderr
    if id_ == "RPR-0001":
        assert (done.stderr.startswith("RPR-0001 "), done.stderr.count("\n")) == (True, 1)
    elif ends:
        assert "AssertionError: step 0: expected gradient -10.0, the mean over ranks, got -" in done.stderr


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("id_", ["RPR-0012", "RPR-0017", "RPR-0021"])
@pytest.mark.parametrize("name", ["failing", "fixed"])
def test_a_minimal_script_ends_as_documented(id_: str, name: str, current_python: Path, tmp_path: Path) -> None:
    repro = load().find(id_)
    variant = repro.variant(name)
    assert variant is not None
    assert Device.CPU in variant.devices
    file = tmp_path / "minimal.py"
    file.write_text(export_minimal(repro, Pins("a test", "3.11", ("torch==2.1.2",)), [name]), "utf-8")
    settings = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ENDED_RANKS)}
    environ = os.environ | settings
    command = [str(current_python), str(file), repro.strategies[0], "cpu"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=240, check=False)
    if variant.outcome is ExpectedOutcome.PASSES:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert any(text.partition("{")[0] in done.stderr for text in variant.signature.match), done.stderr
