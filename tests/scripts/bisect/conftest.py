"""Fixtures: a stack of two wheels, made without a network, a question about one of them, and `repros bisect SCRIPT`."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.cli.main import main
from repros.engine.plan import CellSpec
from repros.model import Stack
from repros.scripts.bisect.question import Question, build_question
from tests.scripts.bisect.scripts import SCRIPT, Bisect, Publish, as_file
from tests.scripts.bisect.tiny_question import RELEASES, surroundings, write_spec, write_stack
from tests.scripts.try_.conftest import Ended
from tests.tiny_stack import write_wheel


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    for name, value in surroundings(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    return write_stack(tmp_path)


@pytest.fixture
def spec(tmp_path: Path) -> CellSpec:
    return write_spec(tmp_path)


@pytest.fixture
def question(spec: CellSpec, tiny: Stack) -> Question:
    return build_question(spec, tiny, "tinylib", RELEASES, None, None)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(SCRIPT)
    return folder


@pytest.fixture
def bisect(tiny: Stack, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bisect:
    """Run `repros bisect` in this process, on the stack of two wheels."""
    for name in ("FORCE_COLOR", "NO_COLOR", "REPROS_JOBS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("repros.cli.shared.bisect_script.stack", lambda *_: tiny)
    files = list(map(as_file, RELEASES))
    monkeypatch.setattr("repros.scripts.bisect.script.question.fetch_files", lambda _: files)

    def run(*words: str) -> Ended:
        code = main(["bisect", *words])
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def publish(tmp_path: Path) -> Publish:
    """Return a function that publishes a release of the library."""
    return lambda version, source: write_wheel(tmp_path, "tinylib", source, version)
