"""Ends a run in order when a signal asks for its end: what runs is ended, what is done is summarised."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

_ASKING = (signal.SIGTERM, signal.SIGHUP)
"""What schedulers, `kill` and a closed terminal send; Ctrl-C raises KeyboardInterrupt already."""


class AskedToEnd(KeyboardInterrupt):
    """A signal asked the run to end."""

    def __init__(self, number: int) -> None:
        """Take the signal's number."""
        super().__init__(number)
        self.number = number


def exit_code(interruption: KeyboardInterrupt) -> int:
    """Return 128 and the signal's number, as shells have it."""
    return 128 + (interruption.number if isinstance(interruption, AskedToEnd) else signal.SIGINT)


@contextlib.contextmanager
def interrupting() -> Iterator[None]:
    """Have SIGTERM and SIGHUP interrupt what runs, as Ctrl-C does; one that is ignored (`nohup`) stays so."""

    def interrupt(number: int, _: FrameType | None) -> NoReturn:
        raise AskedToEnd(number)

    before = {}
    # Only the main thread may set handlers; elsewhere whoever set them knows why.
    with contextlib.suppress(ValueError):
        for number in _ASKING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
