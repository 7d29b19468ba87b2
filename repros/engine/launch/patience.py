"""Waiting for another process's answer: with an end, with news for the user, and not for one that was stopped."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

from repros.engine.launch import containment

T = TypeVar("T")

_LOOK = 1.0
"""Seconds between two looks at the process."""
_STOPPED_LOOKS = 5
"""Looks in a row that must find it stopped; after Ctrl-Z and `fg` it may be continued a little later than this one."""
_NEWS = 30.0
"""Seconds between two lines of progress."""


class NoAnswerError(TimeoutError):
    """A process that did not answer in time, or that a signal has stopped."""


def wait_for_answer(
    attempt: Callable[[float], T],
    pid: int,
    limit: float,
    name: str,
    report_progress: Callable[[str], None] = lambda _: None,
) -> T:
    """Return a process's answer as soon as it is there.

    Args:
        attempt: waits for it so many seconds, then raises TimeoutError or subprocess.TimeoutExpired.
        pid: the process.
        limit: seconds that it gets.
        name: what the user calls it.
        report_progress: receives a line of progress every half minute.

    Raises:
        NoAnswerError: the time is up, or the process is stopped (SIGSTOP) and nothing continues it.
    """
    begun, stopped, told = time.monotonic(), 0, 0
    while True:
        left = begun + limit - time.monotonic()
        try:
            return attempt(max(0.0, min(_LOOK, left)))
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            if isinstance(error, NoAnswerError):
                raise
            stopped = stopped + 1 if containment.is_stopped(pid) else 0
            if stopped >= _STOPPED_LOOKS:
                raise NoAnswerError("it was stopped from outside (SIGSTOP)") from error
            if left <= 0:
                raise NoAnswerError(f"no answer within {limit:.0f} s") from error
        waited = time.monotonic() - begun
        if waited >= _NEWS * (told + 1):
            told += 1
            report_progress(f"{name} has not answered for {waited:.0f} s (it gets {limit:.0f})")
