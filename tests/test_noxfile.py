"""The noxfile, read, and its session `repro` run without nox, which is no dependency of the tests."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from repros.engine import record
from repros.engine.catalogue import load
from repros.engine.results_file import LATEST
from tests.cli.command import CLAIMED

ROOT = Path(__file__).parents[1]
NOXFILE = ROOT / "noxfile.py"


def constant(name: str) -> Any:
    """Return what the noxfile assigns to a name at its top, of what it imports at most `json` and `re`."""
    assigned = (node for node in ast.parse(NOXFILE.read_text()).body if isinstance(node, ast.Assign))
    value = next(node.value for node in assigned if ast.unparse(node.targets[0]) == name)
    return eval(ast.unparse(value), {"HERE": ROOT, "json": json, "re": re})  # noqa: S307 - this project's own file


def test_every_strategy_of_the_catalogue_has_its_session() -> None:
    strategies = constant("STRATEGIES")
    used = {strategy for repro in load() for variant in repro.variants for strategy in variant.strategies}
    assert sorted(used) == strategies


def test_nox_and_the_command_line_mean_the_same_file() -> None:
    assert constant("RESULTS") == str(LATEST)


def session_source(name: str) -> str:
    """Return the source of a session."""
    functions = (node for node in ast.parse(NOXFILE.read_text()).body if isinstance(node, ast.FunctionDef))
    return next(ast.unparse(node) for node in functions if node.name == name)


def test_every_test_file_belongs_to_one_session() -> None:
    apart = [file for files in constant("APART").values() for file in files]
    assert len(apart) == len(set(apart))
    assert [file for file in apart if not (ROOT / file).is_file()] == []
    for name in constant("APART"):
        source = session_source(name)
        assert f"*APART['{name}']" in source or f"run_apart(session, '{name}')" in source
    assert "APART.values()" in session_source("tests")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    places = [*settings["testpaths"], "repros/simulated_gpus/tests"]
    assert f"'{places[-1]}'" in session_source("sim")
    files = (
        file.relative_to(ROOT).as_posix() for top in ("tests", "repros") for file in ROOT.glob(f"{top}/**/test_*.py")
    )
    assert [file for file in files if sum(file.startswith(f"{place}/") for place in places) != 1] == []


def test_continuous_integration_runs_every_session_of_tests() -> None:
    run = (ROOT / ".ci/run").read_text("utf-8")
    called = set(re.findall(r"^(?:\w+=\S+ |beside )?run (\w+)", run, re.MULTILINE))
    # The session `workflows` runs the steps of the workflows.
    steps = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    called |= set(re.findall(r"run: nox -s (\w+)$", steps, re.MULTILINE))
    assert {"lint", "tests", "repro", "evidence", *constant("APART")} <= called


@dataclass
class Session:
    """What nox gives to a session: it runs the real command, on an environment that needs no torch."""

    posargs: list[str]
    notified: list[tuple[str, list[str]]] = field(default_factory=list)

    def install(self, *_: object, **__: object) -> None:
        """Install nothing: the command is there."""

    def notify(self, name: str, posargs: list[str]) -> None:
        self.notified.append((name, posargs))

    def run(self, program: str, *words: str) -> None:
        assert program == "repros"
        command = [sys.executable, "-m", "tests.chaos.fake_environment", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ChildProcessError(done.returncode, done.stdout + done.stderr)


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names of the noxfile, with sessions as plain functions."""
    nox = ModuleType("nox")
    plain = {"session": lambda **_: lambda act: act, "parametrize": lambda *_: lambda act: act}
    project = SimpleNamespace(load_toml=lambda _: {}, dependency_groups=lambda *_: ())
    others = {"param": lambda *_, **__: None, "options": SimpleNamespace(), "Session": Session, "project": project}
    nox.__dict__.update({**plain, **others})
    monkeypatch.setitem(sys.modules, "nox", nox)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return runpy.run_path(str(NOXFILE))


@pytest.mark.slow
def test_the_session_repro_adds_only_to_results_of_its_own(noxfile: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(CLAIMED)
    file = tmp_path / "latest.jsonl"
    words = ["--python", sys.executable, "--catalogue", str(tmp_path / "own.py"), "--results", str(file)]
    session = Session([*words, "--variant", "claimed"])
    noxfile["repro"](session, "ddp")
    old = file.read_bytes()
    noxfile["begun"].clear()  # another day: the file is an old one
    session.notified.clear()
    with pytest.raises(ChildProcessError, match="unknown strategy 'adamw'"):
        noxfile["repro"](session, "adamw")
    assert (file.read_bytes(), session.notified) == (old, [])
    for count in (1, 2):
        noxfile["repro"](session, "ddp")
        assert [line["variant"] for line in record.read(file)] == ["claimed"] * count
    assert session.notified == [("summary", [str(file)])] * 2
    with pytest.raises(ChildProcessError, match="unknown strategy 'adamw'"):
        noxfile["repro"](session, "adamw")
    assert session.notified == [("summary", [str(file)])] * 3


@pytest.mark.slow
def test_a_selection_without_cells_has_no_results(noxfile: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "latest.jsonl"
    file.write_bytes(b'{"schema": 1, "repro": "RPR-0001"}\n')
    session = Session(["RPR-0017", "--stack", "current", "--device", "sim", "--results", str(file)])
    for strategy in ("ddp", "adamw"):
        noxfile["repro"](session, strategy)
        assert file.read_bytes() == b""
    assert session.notified == [("summary", [str(file)])] * 2
    with pytest.raises(ChildProcessError, match="holds no result"):
        session.run("repros", "summary", str(file))
