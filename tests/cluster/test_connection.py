"""Errors of the connection: one sentence each; and what `--on` costs those who do not use it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from repros.cli import main
from tests.cli.command import RAISES

ROOT = Path(__file__).parents[2]


def run(capsys: pytest.CaptureFixture[str], on: str, *more: str) -> tuple[int, str]:
    code = main(["run", "--catalogue", RAISES, "--on", on, *more])
    return code, capsys.readouterr().err


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def test_another_engine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, error = run(capsys, "dask")
    assert code == 2
    assert [part in error for part in ("'--on': 'dask'", "'ray' or 'ray://HOST:PORT'")] == [True, True]


def test_without_ray_the_extra_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    code, error = run(capsys, "ray")
    assert code == 2
    assert [part in error for part in ("--on", 'pip install "repros[ray]"')] == [True, True]


def test_an_address_without_a_port_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, error = run(capsys, "ray://head")
    assert (code, error.startswith("repros: 'ray://head' "), "RAY_ADDRESS=HOST:PORT" in error) == (2, True, True)
    monkeypatch.setenv("RAY_ADDRESS", "head")
    code, error = run(capsys, "ray")
    assert (code, error.startswith("repros: 'head' ")) == (2, True)


@pytest.mark.parametrize("form", ["ray://127.0.0.1:{}", "127.0.0.1:{}"])
def test_where_nothing_listens_there_is_no_cluster(
    form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = form.format(closed.getsockname()[1])
        monkeypatch.setenv("RAY_ADDRESS", address)
        code, error = run(capsys, address if address.startswith("ray:") else "ray")
    sentence = f"no Ray cluster answers at {address} (Connection refused); 'ray start --head' starts one."
    assert (code, error) == (2, f"repros: {sentence}\n")


@pytest.mark.parametrize("command", [["run", "--help"], ["matrix", "--dry-run", "--on", "ray", "--stack", "current"]])
def test_ray_is_imported_only_where_cells_run_on_it(command: list[str]) -> None:
    """`matrix --dry-run` needs no cluster either: the locks tell what would run."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": "127.0.0.1:1"}
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from repros.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "assert 'repros.cluster' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
