"""Fixtures for `repros try`: a working directory, scripts in it, the command, and two stacks that need no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from repros.cli.main import main
from repros.engine import environment, environments
from repros.model import Device, Environment
from repros.scripts.try_ import sandbox
from repros.scripts.try_.bubblewrap import find_bubblewrap

ROOT = Path(__file__).parents[3]
PROBE = """
import os
def attempt(act):
    try:
        print("done", act())
    except OSError as error:
        print(error.strerror)
"""
"""The beginning of a script that attempts something and prints how that ends."""
SANDBOX = sandbox.find_sandbox(network=False)


class Ended(NamedTuple):
    """A command's exit code and outputs."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def stack(self) -> Any:
        (found,) = self.json["stacks"]
        return found

    @property
    def written(self) -> str:
        """What the script's first process wrote."""
        return Path(self.stack["logs"], "main.log").read_text("utf-8")


Try = Callable[..., Ended]
Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    if SANDBOX.problems:  # this machine's is weak, and tests of what it lacks are skipped
        monkeypatch.setenv("REPROS_WEAK_SANDBOX", "1")
    return tmp_path


@pytest.fixture
def write(here: Path) -> Write:
    """Write a script, dedented, and return its path."""

    def write_it(name: str, source: str) -> Path:
        (here / name).write_text(dedent(source), encoding="utf-8")
        return Path(name)

    return write_it


@pytest.fixture
def two_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every stack be this interpreter, reported to have torch."""

    def probe(
        python: Path, stack: str | None = None, *, sim: bool = True, report_progress: object = None
    ) -> Environment:
        versions = {"torch": "2.1.2" if stack == "2023-12" else "2.15.0"}
        return Environment(stack or "", Path(sys.executable), "3.11.9", versions, {Device.CPU: 2}, stack=stack)

    monkeypatch.setattr(environment, "probe", probe)
    monkeypatch.setattr(environments, "ensure", lambda stack, report_progress: Path(sys.executable))


@pytest.fixture(params=["bubblewrap", "calls of the kernel"])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the namespaces of the sandbox in each way, and return its name."""
    if request.param != "bubblewrap":
        monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: None)
    elif find_bubblewrap() is None:
        pytest.skip("bubblewrap is not installed")
    return str(request.param)


@pytest.fixture
def try_here(two_stacks: None, capsys: pytest.CaptureFixture[str]) -> Try:
    """Run `repros try` in this process, on stacks that are this interpreter."""

    def run(*words: object) -> Ended:
        code = main(["try", *map(str, words)])
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def try_real(current_python: Path) -> Try:
    """Run `repros try` as a program, on a stack with torch."""

    def run(*words: object) -> Ended:
        before, separator, after = _split(list(map(str, words)))
        stack = os.environ.get("REPROS_TEST_STACK", "current")
        options = ["--stack", stack, "--timeout", "200"]  # on a busy machine, too
        command = [sys.executable, "-m", "repros", "try", *before, *options, *separator, *after]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=280, check=False)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run


def _split(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    place = words.index("--") if "--" in words else len(words)
    return words[:place], words[place : place + 1], words[place + 1 :]
