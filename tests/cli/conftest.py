"""Fixtures for the commands: a working directory, an environment, and a command's outputs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from repros import environments
from repros.cli import main
from repros.engine import environment, record
from repros.model import Device, Environment
from tests.conftest import TOYS

ROOT = Path(__file__).parents[2]


# Indented, so that the plugin does not take this file for a repro script.
CLAIMED = dedent('''\
    # /// script
    # requires-python = ">=3.9"
    # dependencies = ["torch"]
    #
    # [tool.repro]
    # id = "RPR-0007"
    # title = "A script of one's own"
    # upstream = ["https://example.org/1"]
    # packages = ["torch"]
    # affected = ["torch>=2.1"]
    # home = "2023-12"
    # strategies = ["ddp"]
    # devices = ["cpu"]
    # processes = 1
    #
    # [tool.repro.variants.failing]
    # outcome = "fails"
    # about = "fails"
    # raises = "ValueError"
    # match = "as documented"
    #
    # [tool.repro.variants.claimed]
    # outcome = "fails"
    # about = "does something beside the point"
    # claim = "it helps"
    #
    # [tool.repro.variants.fixed]
    # outcome = "passes"
    # about = "fails all the same"
    # ///
    """Symptom: it fails."""
    raise ValueError("as documented")
    ''')


RAISES = str(TOYS / "raises.py")


HANGS = str(TOYS / "ignores_signals.py")


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary working directory, a log's width, and an environment that needs no torch."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    def probe(python: Path, name: str | None = None, *, sim: bool = True) -> Environment:
        absent = {Device.CUDA: "torch 2.13.0 is a build without CUDA"}
        versions = {"torch": "2.13.0"}
        return Environment(
            name or str(python), Path(sys.executable), "3.11.9", versions, {Device.CPU: 2}, absent, stack=name
        )

    monkeypatch.setattr(environment, "probe", probe)
    monkeypatch.setattr(environments, "ensure", lambda stack, say: say(f"making {stack.name}") or Path(sys.executable))
    return tmp_path


@pytest.fixture
def repros(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command; return its exit code and its two outputs, times filtered."""

    def command(*words: str) -> tuple[int, str, str]:
        code = main(words)
        out, err = capsys.readouterr()
        return code, re.sub(r"\d+\.\d s", "1.0 s", re.sub(r" \d+\.\d(\n|  does)", r" 1.0\1", out)), err

    return command


def lines(file: str = ".repros/latest.jsonl") -> list[str]:
    return [f"{line['variant']} {line['verdict']}" for line in record.read(Path(file))]


def lines_over(width: int, text: str) -> list[str]:
    """Return the lines that are too wide although they could be broken."""
    return [line for line in text.splitlines() if len(line) > width and " " in line.strip()]
