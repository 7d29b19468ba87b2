"""Fixtures for the commands: a working directory, an environment, and a command's outputs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from repros.cli import main
from repros.engine import environment, environments
from tests.cli.command import Command, fake_probe


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary working directory, a log's width, and an environment that needs no torch."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    monkeypatch.setattr(environment, "probe", fake_probe)
    monkeypatch.setattr(
        environments,
        "ensure",
        lambda stack, report_progress: report_progress(f"making {stack.name}") or Path(sys.executable),
    )
    return tmp_path


@pytest.fixture
def repros(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command; return its exit code and its two outputs, times filtered."""

    def command(*words: str) -> tuple[int, str, str]:
        code = main(words)
        out, err = capsys.readouterr()
        return code, re.sub(r"\d+\.\d s", "1.0 s", re.sub(r" \d+\.\d(\n|  does)", r" 1.0\1", out)), err

    return command
