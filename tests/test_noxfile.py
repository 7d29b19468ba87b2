"""The noxfile: which sessions it lists, which session runs a test file, and one real run of `nox -s "repro(...)"`."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from repros.engine import record
from repros.engine.record import LATEST
from tests.cli.command import CLAIMED
from tests.package_catalogue import load

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def noxfile() -> Iterator[dict[str, Any]]:
    """Return the names that the noxfile defines; once, since nox keeps a register of the sessions."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sys, "path", sys.path.copy())
        monkeypatch.setattr(os, "environ", os.environ.copy())
        yield runpy.run_path(str(ROOT / "noxfile.py"))


def run_nox(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), *words]
    # Sessions without an environment of their own find this one's programs.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environ = {**os.environ, "PATH": path}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_strategy_of_the_catalogue_has_its_session() -> None:
    strategies = {strategy for repro in load() for variant in repro.variants for strategy in variant.strategies}
    listed = json.loads(run_nox("--list", "--json", "--sessions", "repro").stdout)
    assert {session["session"] for session in listed} == {f"repro({strategy})" for strategy in strategies}


def test_nox_and_the_command_line_mean_the_same_file(noxfile: dict[str, Any]) -> None:
    assert noxfile["RESULTS"] == str(LATEST)


def test_every_test_file_belongs_to_one_session(noxfile: dict[str, Any]) -> None:
    separate = [file for files in noxfile["APART"].values() for file in files]
    assert len(separate) == len(set(separate))
    assert [file for file in separate if not (ROOT / file).is_file()] == []
    assert set(noxfile["APART"]) <= {*noxfile}, "each has a session of its name"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    folders = [*settings["testpaths"], "repros/simulated_gpus/tests"]  # the session `sim` runs the latter
    files = (
        file.relative_to(ROOT).as_posix() for top in ("tests", "repros") for file in ROOT.glob(f"{top}/**/test_*.py")
    )
    assert [file for file in files if sum(file.startswith(f"{folder}/") for folder in folders) != 1] == []


@pytest.mark.slow
def test_the_sessions_of_strategies_run_their_cells_together(tmp_path: Path, current_python: Path) -> None:
    (tmp_path / "catalogue").mkdir()
    for number, strategy in enumerate(("ddp", "fsdp", "adamw"), 7):
        text = CLAIMED.replace('["ddp"]', f'["{strategy}"]').replace("RPR-0007", f"RPR-{number:04}")
        (tmp_path / f"catalogue/{strategy}.py").write_text(text)
    results = tmp_path / "latest.jsonl"
    words = ["--python", str(current_python), "--catalogue", str(tmp_path / "catalogue"), "--results", str(results)]
    words += ["--launch", "cold"]  # the scripts import no torch, which a warm launch would
    # In this environment, which has the project: nox creates none and installs nothing.
    sessions = ["--no-venv", "--no-install", "--sessions", "repro(ddp)", "repro(fsdp)"]
    done = run_nox(*sessions, "--", *words, "--variant", "claimed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted((line["strategy"], line["verdict"]) for line in record.read(results)) == [
        ("ddp", "reproduced"),
        ("fsdp", "reproduced"),
    ]
    assert done.stderr.count("Running session cells") == 1
    failed = run_nox(*sessions, "--", *words, "--variant", "fixed")
    assert failed.returncode == 1
    assert "* cells: failed" in failed.stderr
