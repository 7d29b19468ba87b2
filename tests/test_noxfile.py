"""The noxfile, read, and its session `repro` run without nox, which is no dependency of the tests."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import pytest

from repros.engine import record
from repros.engine.catalogue import load
from repros.engine.record import LATEST
from tests.cli.command import CLAIMED

ROOT = Path(__file__).parents[1]
NOXFILE, SHARED = ROOT / "noxfile.py", ROOT / "tests/sessions.py"


def constant(name: str) -> Any:
    """Return what the noxfile or what its sessions share assigns to a name, of the imports at most `json` and `re`."""
    nodes = [node for file in (NOXFILE, SHARED) for node in ast.parse(file.read_text()).body]
    assigned = (node for node in nodes if isinstance(node, ast.Assign))
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
    called = set(re.findall(r"^ *(?:\w+=\S+ |beside )?run (\w+)", run, re.MULTILINE))
    # The session `workflows` runs the steps of the workflows.
    steps = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    called |= set(re.findall(r"run: nox -s (\w+)$", steps, re.MULTILINE))
    assert {"lint", "tests", "repro", "evidence", *constant("APART")} <= called


class CommandFailed(Exception):  # noqa: N818 - nox's name
    """What nox raises when a command fails."""


@dataclass
class Session:
    """What nox gives to a session: it runs the real command, on an environment that needs no torch."""

    posargs: list[str]
    waiting: Sequence[str] = ()
    """Strategies of the sessions that follow."""
    code: int | None = None
    """The exit code of a `repros run`, in the place of its own."""
    bin: str = str(Path(sys.executable).parent)
    notified: list[tuple[str, list[str]]] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    """The commands and the strategies that they name, and the lines of the log."""
    output: str = ""

    @property
    def _runner(self) -> SimpleNamespace:
        """What nox shows of the sessions of its run."""
        calls = [SimpleNamespace(call_spec={"strategy": strategy}) for strategy in ("done", *self.waiting)]
        sessions = [(SimpleNamespace(name="repro", func=call), call is not calls[0]) for call in calls]
        sessions.append((SimpleNamespace(name="lint", func=None), True))
        return SimpleNamespace(manifest=SimpleNamespace(list_all_sessions=lambda: sessions))

    def install(self, *_: object, **__: object) -> None:
        """Install nothing: the command is there."""

    def notify(self, name: str, posargs: list[str]) -> None:
        self.notified.append((name, posargs))

    def log(self, line: str) -> None:
        self.ran.append(line)

    def error(self, line: str) -> NoReturn:
        raise CommandFailed(line)

    def run(self, program: str, *words: str, external: bool) -> None:
        assert (program, external) == (str(Path(self.bin, "repros")), True)
        command = [sys.executable, "-m", "tests.chaos.fake_environment", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        self.output = done.stdout + done.stderr
        named = [word for before, word in itertools.pairwise(words) if before == "--strategy"]
        self.ran.append(" ".join([words[0], *named]))
        code = done.returncode if words[0] != "run" or self.code is None else self.code
        if code:
            raise CommandFailed(f"Returned code {code}")


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names of the noxfile, with sessions as plain functions."""
    nox = ModuleType("nox")
    plain = {"session": lambda **_: lambda act: act, "parametrize": lambda *_: lambda act: act}
    project = SimpleNamespace(load_toml=lambda _: {}, dependency_groups=lambda *_: ())
    others = {"param": lambda *_, **__: None, "options": SimpleNamespace(), "Session": Session, "project": project}
    nox.__dict__.update({**plain, **others})
    command = ModuleType("nox.command")
    command.__dict__["CommandFailed"] = CommandFailed
    nox.__dict__["command"] = command
    monkeypatch.setitem(sys.modules, "nox", nox)
    monkeypatch.setitem(sys.modules, "nox.command", command)
    # It is imported anew, by this test's nox, and what its sessions have run is not this test's.
    monkeypatch.delitem(sys.modules, "tests.sessions", raising=False)
    monkeypatch.setattr(sys, "path", sys.path.copy())
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
    with pytest.raises(CommandFailed, match="Returned code 2"):
        noxfile["repro"](session, "adamw")
    assert "unknown strategy 'adamw'" in session.output
    assert (file.read_bytes(), session.notified) == (old, [])
    for count in (1, 2):
        noxfile["repro"](session, "ddp")
        assert [line["variant"] for line in record.read(file)] == ["claimed"] * count
    assert session.notified == [("summary", [str(file)])] * 2
    with pytest.raises(CommandFailed, match="Returned code 2"):
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
    with pytest.raises(CommandFailed, match="Returned code 2"):
        noxfile["summary"](Session([str(file)]))
    together = Session(session.posargs, waiting=["adamw"])
    noxfile["repro"](together, "ddp")
    noxfile["repro"](session, "adamw")
    assert (together.ran, session.ran[4:]) == (["run ddp adamw", "summary ddp"], ["summary adamw"])


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """Make a catalogue of a script under `ddp` that agrees and one under `fsdp` that does not; return the options."""
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue/agrees.py").write_text(CLAIMED)
    gone = CLAIMED.replace('["ddp"]', '["fsdp"]').replace("RPR-0007", "RPR-0008").replace("raise ValueError", "print")
    (tmp_path / "catalogue/gone.py").write_text(gone)
    place = ["--catalogue", str(tmp_path / "catalogue"), "--results", str(tmp_path / "latest.jsonl")]
    return ["--python", sys.executable, *place, "--variant", "claimed"]


@pytest.mark.slow
def test_the_first_session_runs_the_cells_of_all_and_each_reports_its_own(
    noxfile: dict[str, Any], two: list[str], tmp_path: Path
) -> None:
    first, second = Session(two, waiting=["fsdp"]), Session(two)
    noxfile["repro"](first, "ddp")
    assert first.ran == ["run ddp fsdp", "summary ddp fsdp", "summary ddp"]
    assert first.output == "1 agree, 0 news, 0 trouble\n"
    with pytest.raises(CommandFailed, match="Returned code 1"):
        noxfile["repro"](second, "fsdp")
    assert second.ran == ["summary fsdp"]
    assert re.fullmatch(r"gone +RPR-0008 claimed fsdp cpu \S+  .+\n0 agree, 1 news, 0 trouble\n", second.output)
    assert first.notified == second.notified == [("summary", [str(tmp_path / "latest.jsonl")])]
    assert [line["strategy"] for line in record.read(tmp_path / "latest.jsonl")] == ["ddp", "fsdp"]
    noxfile["repro"](again := Session(two), "ddp")  # it has been reported, so it runs
    assert again.ran == ["run ddp", "summary ddp"]
    assert [line["strategy"] for line in record.read(tmp_path / "latest.jsonl")] == ["ddp", "fsdp", "ddp"]


@pytest.mark.slow
def test_what_is_refused_for_all_at_once_runs_by_itself(
    noxfile: dict[str, Any], two: list[str], tmp_path: Path
) -> None:
    first, second = Session(two, waiting=["adamw"]), Session(two)
    noxfile["repro"](first, "ddp")
    refused = "this was refused for all strategies at once; each runs by itself"
    assert first.ran == ["run ddp adamw", refused, "run ddp", "summary ddp"]
    with pytest.raises(CommandFailed, match="Returned code 2"):
        noxfile["repro"](second, "adamw")
    assert second.ran == ["run adamw"]
    assert [line["strategy"] for line in record.read(tmp_path / "latest.jsonl")] == ["ddp"]


@pytest.mark.slow
@pytest.mark.parametrize("code", [1, 143], ids=["an environment is broken", "it was ended"])
def test_a_run_that_fails_as_a_whole_fails_every_session(code: int, noxfile: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(CLAIMED.replace('["ddp"]', '["ddp", "fsdp"]'))
    words = ["--python", sys.executable, "--catalogue", str(tmp_path / "own.py"), "--variant", "claimed"]
    words += ["--results", str(tmp_path / "latest.jsonl")]
    problem = rf"the run failed as a whole \(Returned code {code}\)"
    for session, strategy in ((Session(words, waiting=["fsdp"], code=code), "ddp"), (Session(words), "fsdp")):
        with pytest.raises(CommandFailed, match=problem):
            noxfile["repro"](session, strategy)
