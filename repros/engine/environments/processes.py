"""The processes that threads wait for, so that the end of their work ends these: an interrupt reaches one thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from subprocess import DEVNULL, PIPE, Popen
from typing import Any


class Processes:
    """What the threads have started and wait for. After :meth:`stop` no thread takes an answer from it."""

    def __init__(self) -> None:
        """Begin with none."""
        self.stopped = threading.Event()
        """Set at the end; a cell that runs ends with it."""
        self._ends: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def ended_by(self, end: Callable[[], object]) -> Iterator[None]:
        """Let :meth:`stop` call `end` while the block runs.

        Raises:
            CancelledError: after the block, if it was stopped: what a killed process said is no answer.
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
        """Return a context in which :meth:`stop` kills a process, as `watch_uv` takes it."""
        return self.ended_by(process.kill)

    def run(self, command: Sequence[str], *, seconds: float, **options: Any) -> tuple[int, str]:
        """Run a program without input; return its exit code, negative for a signal, and what it printed to stdout.

        Raises:
            subprocess.TimeoutExpired: it took longer than `seconds`, and was killed.
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
        """End all that runs."""
        self.stopped.set()
        with self._lock:
            ends = list(self._ends)
        for end in ends:
            end()

    def check(self) -> None:
        """Raise CancelledError if it was stopped."""
        if self.stopped.is_set():
            raise CancelledError
