"""The environment of a stack, made in a thread of its own while the cells of another stack run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError

from repros.engine import environments
from repros.engine.environment import Targets, prepare
from repros.engine.environments.processes import Processes
from repros.engine.environments.use import MARKER, drop_marked
from repros.engine.environments.uv import ReportProgress, watch_uv
from repros.engine.plan import CellSpec
from repros.model import Stack

_PATIENCE = 5.0
"""Seconds that an interrupted making gets to remove what it has begun; a compiler that it runs is left to itself."""


class EnvironmentAhead:
    """A stack's environment, which is missing: from its making, which :meth:`start` begins, until its cells run."""

    def __init__(self, stack: Stack, specs: Sequence[CellSpec], report_progress: ReportProgress, *, keep: bool) -> None:
        """Describe it; nothing is made yet.

        Args:
            stack: the stack.
            specs: what will run on it.
            report_progress: receives lines of progress, from the thread that makes it.
            keep: whether it stays if it is made here and then not used.
        """
        self._stack, self._specs, self._report_progress, self._keep = stack, specs, report_progress, keep
        self._processes = Processes()
        self._thread = threading.Thread(target=self._make, daemon=True, name=f"environment of {stack.name}")

    def start(self) -> None:
        """Begin to make it, unless it is there, or that has begun."""
        if self._thread.ident is None and not environments.ready(self._stack):
            self._thread.start()

    def wait(self) -> None:
        """Wait while it is being made; if that fails, those who need it find out why when they try again."""
        if self._thread.ident is not None:
            self._thread.join()

    def close(self) -> None:
        """End its making, if that goes on, and drop it if it was made here and is to go."""
        if self._thread.ident is None:
            return
        self._processes.stop()
        self._thread.join(_PATIENCE)
        drop_marked(self._stack, self._report_progress, keep=self._keep)

    def _make(self) -> None:
        watch_uv.set(self._processes.watch)
        where = Targets((self._stack.name,), known={self._stack.name: self._stack})
        # Probed as well, as the simulated accelerator may have to be compiled.
        with contextlib.suppress(CancelledError), prepare(self._specs, where, self._report_progress):
            if environments.ready(self._stack):
                (environments.place(self._stack) / MARKER).touch()
