"""The cache folder: one absolute path, which probes and cells get too, whatever their working directory."""

from __future__ import annotations

import sys
from pathlib import Path

import platformdirs
import pytest

from repros.engine.cells import job_of
from repros.engine.launch import cold
from repros.engine.launch.environ import for_device
from repros.engine.launch.job import RunFolders
from repros.engine.probe import probe
from repros.model import Device, cache
from tests.factories import cell, environment, repro

PROBED = '{"python": "3.11.9", "versions": {"torch": "%s"}, "cuda": {"count": 0, "absent": null}, "sim": null}'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the test's own folder the home folder and the working directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=["relative/cache", "~/cache", "/absolute/cache", "", None])
def folder(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set `REPROS_CACHE_DIR`, or unset it; return the folder that results."""
    monkeypatch.setenv(cache.VARIABLE, "unset below")
    if request.param is None:
        monkeypatch.delenv(cache.VARIABLE)
    else:
        monkeypatch.setenv(cache.VARIABLE, request.param)
    expected = {"relative/cache": home / "relative/cache", "~/cache": home / "cache"}
    if not request.param:
        return platformdirs.user_cache_path("repros")
    return expected.get(request.param, Path(request.param))


def test_the_folder_is_absolute(folder: Path) -> None:
    assert cache.cache_folder() == folder
    assert folder.is_absolute()


@pytest.mark.parametrize("device", Device)
def test_a_cells_processes_get_the_absolute_folder(folder: Path, device: Device) -> None:
    assert for_device(device, 2, on_stack=True)[cache.VARIABLE] == str(folder)


def test_a_probe_gets_the_absolute_folder(folder: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nprintf '{PROBED}\\n' \"${cache.VARIABLE}\"\n")
    python.chmod(0o700)
    assert probe(python, "fake", sim=False).versions["torch"] == str(folder)


def test_the_accelerator_of_a_cold_cell_uses_the_folder_from_another_working_directory(
    folder: Path, tmp_path: Path
) -> None:
    """A relative folder once meant another folder in each cell, and the accelerator was compiled in each."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os\nfrom repros.simulated_gpus import build\nprint(os.getcwd())\nprint(build._cache_folder())\n"
    )
    dirs = RunFolders(tmp_path / "cell", tmp_path / "workdir")
    dirs.folder.mkdir()
    dirs.workdir.mkdir()
    wanted = cell(repro=repro(path=script), device=Device.SIM, environment=environment(python=Path(sys.executable)))
    assert cold.launch(job_of(wanted), dirs).wait(60)
    assert dirs.log.read_text().splitlines() == [str(dirs.workdir), str(folder)]
