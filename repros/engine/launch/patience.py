"""Waiting for another process's answer: with a timeout, with progress for the user, and not if it was stopped."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

from repros.engine.launch import containment

T = TypeVar("T")

_POLL = 1.0
"""Seconds between two checks of the process."""
_STOPPED_POLLS = 5
"""Checks in a row that must find it stopped: after Ctrl-Z and `fg` it may continue a little later than this process."""
_PROGRESS_PERIOD = 30.0
"""Seconds between two lines of progress."""


class NoAnswerError(TimeoutError):
    """A process that did not answer in time, or that a signal has stopped."""


def wait_for_answer(
    wait: Callable[[float], T],
    pid: int,
    limit: float,
    name: str,
    report_progress: Callable[[str], None] = lambda _: None,
) -> T:
    """Return a process's answer as soon as it is there.

    Args:
        wait: waits for it for a number of seconds, then raises TimeoutError or subprocess.TimeoutExpired.
        pid: the process.
        limit: timeout in seconds.
        name: its name in messages.
        report_progress: receives a line of progress every half minute.

    Raises:
        NoAnswerError: it timed out, or the process is stopped (SIGSTOP) and nothing continues it.
    """
    begun, stopped, reports = time.monotonic(), 0, 0
    while True:
        left = begun + limit - time.monotonic()
        try:
            return wait(max(0.0, min(_POLL, left)))
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            if isinstance(error, NoAnswerError):
                raise
            stopped = stopped + 1 if containment.is_stopped(pid) else 0
            if stopped >= _STOPPED_POLLS:
                raise NoAnswerError("it was stopped from outside (SIGSTOP)") from error
            if left <= 0:
                raise NoAnswerError(f"no answer within {limit:.0f} s") from error
        waited = time.monotonic() - begun
        if waited >= _PROGRESS_PERIOD * (reports + 1):
            reports += 1
            report_progress(f"{name} has not answered for {waited:.0f} s (timeout: {limit:.0f} s)")
