"""The probe of an environment that prints as Python starts and as it ends, that is stopped, or that is not there."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from repros.engine.launch import patience
from repros.engine.probe import ProbeError, probe
from tests.engine.busy_start import make_environment

Make = Callable[[str], Path]


@pytest.fixture
def environment(tmp_path: Path) -> Make:
    """Return a function that makes an environment in which Python does something as it starts."""

    return lambda code: make_environment(tmp_path / "venv", code)


@pytest.mark.parametrize(
    "line",
    [
        "print('a line as Python starts')",
        "sys.stdout.write('half a line')",
        "atexit.register(print, 'a line as Python ends')",
        "print('{}'); atexit.register(print, '{}')",
    ],
)
def test_what_an_environment_prints_is_no_answer(line: str, environment: Make) -> None:
    found = probe(environment(line), sim=False, needs_torch=False)
    assert found.python_version == platform.python_version()


def test_a_stopped_probe_is_not_waited_for(environment: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_POLL", 0.1)
    python = environment("os.kill(os.getpid(), signal.SIGSTOP)")
    with pytest.raises(ProbeError) as refused:
        probe(python, sim=False)
    assert str(refused.value).startswith(f"{python}: ")
    assert "SIGSTOP" in str(refused.value)


def test_nothing_is_announced_of_an_interpreter_that_is_not_there(environment: Make) -> None:
    said: list[str] = []
    with pytest.raises(ProbeError, match="No such file or directory"):
        probe(Path("/nowhere/bin/python"), sim=True, report_progress=said.append)
    assert said == []
    python = environment("pass")
    probe(python, sim=True, needs_torch=False, report_progress=said.append)
    assert [str(python) in line for line in said] == [True]
