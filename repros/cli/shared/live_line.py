"""The live line: the running cells and their time, in the last line of a terminal.

All output of the commands goes through :mod:`repros.cli.shared.streams`, which erases the line before printing and
draws it again afterwards.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Self, TextIO

from repros.text.control import remove_controls

_SPINNER = "|/-\\"
_INTERVAL = 0.2
"""Seconds between two drawings."""
_ERASE = "\r\x1b[K"
"""Return to the first column and erase to the end of the line (ECMA-48: EL)."""


class LiveLine:
    """A spinner, a description and its elapsed time; it is erased at the end."""

    current: LiveLine | None = None
    """The visible line."""

    def __init__(self, stream: TextIO, width: int, *, hidden: bool) -> None:
        """Prepare a line on a terminal of this width; a hidden one draws nothing."""
        self._stream = stream
        self._width = width
        self._hidden = hidden
        self._frames = itertools.cycle(_SPINNER)
        self._frame = next(self._frames)
        self._description, self._since = "", time.monotonic()
        # Reentrant: a signal handler may print while the main thread draws.
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._spin, name="live line", daemon=True)

    def describe(self, description: str) -> None:
        """Show another description, and start its time at zero."""
        with self._lock:
            self._description, self._since = remove_controls(description), time.monotonic()
            self._draw()

    @contextlib.contextmanager
    def erased(self) -> Iterator[None]:
        """Hide the line while something is printed."""
        with self._lock:
            self._write(_ERASE)
            yield
            self._draw()

    def __enter__(self) -> Self:
        """Draw the line until the block ends."""
        if not self._hidden:
            LiveLine.current = self
            self._draw()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Erase the line."""
        if LiveLine.current is self:
            LiveLine.current = None
            self._stopped.set()
            self._thread.join()
            self._write(_ERASE)

    def _spin(self) -> None:
        while not self._stopped.wait(_INTERVAL):
            with self._lock:
                self._frame = next(self._frames)
                self._draw()

    def _draw(self) -> None:
        if LiveLine.current is self:
            elapsed = timedelta(seconds=int(time.monotonic() - self._since))
            width = self._width - 1  # a terminal may wrap after its last column
            room = max(width - len(f"{self._frame}  {elapsed}"), 0)
            self._write(_ERASE + f"{self._frame} {self._description[:room]} {elapsed}"[:width])

    def _write(self, text: str) -> None:
        # The terminal is gone, which the next regular output reports.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
