"""Clean shutdown on SIGTERM and SIGHUP: running cells are ended, finished ones are summarised."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals of schedulers, `kill` and a closed terminal; Ctrl-C raises KeyboardInterrupt already."""


_received: list[int] = []
"""Received signals. Ray replaces the handler's exception with a plain KeyboardInterrupt."""


class SignalInterrupt(KeyboardInterrupt):
    """An interruption by SIGTERM or SIGHUP."""

    def __init__(self, number: int) -> None:
        """Store the signal's number."""
        super().__init__(number)
        self.number = number


def interruption_exit_code(interruption: KeyboardInterrupt) -> int:
    """Return 128 plus the signal's number, as shells do."""
    if isinstance(interruption, SignalInterrupt):
        return 128 + interruption.number
    return 128 + (_received[-1] if _received else signal.SIGINT)


@contextlib.contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP interrupt the block as Ctrl-C does; an ignored signal (`nohup`) stays ignored."""

    def interrupt(number: int, _: FrameType | None) -> NoReturn:
        _received.append(number)
        raise SignalInterrupt(number)

    _received.clear()
    before = {}
    # Only the main thread may set handlers (ValueError); a program that calls this elsewhere has handlers of its own.
    with contextlib.suppress(ValueError):
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
