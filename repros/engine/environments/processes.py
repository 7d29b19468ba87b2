"""Cancellation of the processes that threads wait for, since an interrupt reaches only the main thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from subprocess import DEVNULL, PIPE, Popen
from typing import Any


class Processes:
    """The processes that threads have started and wait for. After :meth:`stop` their results are discarded."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        """Set by :meth:`stop`; running cells poll it."""
        self._ends: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def ended_by(self, end: Callable[[], object]) -> Iterator[None]:
        """Register `end` within the context, for :meth:`stop` to call.

        Raises:
            CancelledError: after the block, if it was stopped: the output of a killed process is no result.
        """
        with self._lock:
            self._ends.append(end)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._ends.remove(end)
            self.check()

    def watch(self, process: Popen[str]) -> contextlib.AbstractContextManager[None]:
        """Return a context in which :meth:`stop` kills a process; the value for `watch_uv`."""
        return self.ended_by(process.kill)

    def run(self, command: Sequence[str], *, seconds: float, **options: Any) -> tuple[int, str]:
        """Run a program without input; return its exit code, negative for a signal, and its stdout.

        Raises:
            subprocess.TimeoutExpired: it was killed after `seconds`.
            CancelledError: it was stopped.
        """
        with Popen(
            command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True, errors="replace", **options
        ) as process:
            with self.watch(process):
                try:
                    printed, _ = process.communicate(timeout=seconds)
                except BaseException:
                    process.kill()
                    raise
            return process.returncode, printed

    def stop(self) -> None:
        """Kill all registered processes."""
        self.stopped.set()
        with self._lock:
            ends = list(self._ends)
        for end in ends:
            end()

    def check(self) -> None:
        """Raise CancelledError after :meth:`stop`."""
        if self.stopped.is_set():
            raise CancelledError
