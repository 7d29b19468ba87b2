"""Waiting for another process: its answer, its silence, and the lines of progress meanwhile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from repros.engine.launch import patience
from repros.engine.launch.patience import NoAnswerError, wait_for_answer


@pytest.fixture
def silent() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def wait(process: subprocess.Popen[bytes], limit: float, told: list[str]) -> int:
    return wait_for_answer(process.wait, process.pid, limit, "the probe", told.append)


def test_an_answer_is_returned_as_it_comes() -> None:
    told: list[str] = []
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        assert wait(process, 60, told) == 3
    assert told == []


def test_a_silent_process_is_told_of_and_given_up(
    silent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_POLL", 0.05)
    monkeypatch.setattr(patience, "_PROGRESS_PERIOD", 0.4)
    told: list[str] = []
    with pytest.raises(NoAnswerError, match=r"\b2 s$"):
        wait(silent, 2, told)
    assert 1 <= len(told) <= 5  # periods, of which a busy machine may pass some unseen
    assert all(re.fullmatch(r"the probe has not answered for [012] s \(timeout: 2 s\)", line) for line in told)


def test_a_stopped_process_is_given_up_at_once(
    silent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_POLL", 0.05)
    os.kill(silent.pid, signal.SIGSTOP)
    with pytest.raises(NoAnswerError, match="SIGSTOP"):
        wait(silent, 60, [])


def test_a_process_that_is_continued_has_its_time(
    silent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_POLL", 0.01)
    looks = 0

    def attempt(seconds: float) -> int:
        nonlocal looks
        looks += 1
        number = signal.SIGSTOP if looks % patience._STOPPED_POLLS else signal.SIGCONT
        os.kill(silent.pid, number)
        return silent.wait(seconds)

    with pytest.raises(NoAnswerError, match=r"\b1 s$"):
        wait_for_answer(attempt, silent.pid, 1, "the probe")
    assert looks > patience._STOPPED_POLLS
