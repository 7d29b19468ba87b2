"""The environment of the next stack, made in a background thread while the cells of another stack run."""

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

_CLEANUP_TIMEOUT = 5.0
"""Seconds for an interrupted installation to clean up; a running compiler is not waited for."""


class EnvironmentAhead:
    """An environment that is made in the background, from :meth:`start` until its cells run."""

    def __init__(self, stack: Stack, specs: Sequence[CellSpec], report_progress: ReportProgress, *, keep: bool) -> None:
        """Initialise without starting.

        Args:
            stack: the stack.
            specs: the cells that will run on it.
            report_progress: receives lines of progress, from the background thread.
            keep: whether the environment stays if it is made and then not used.
        """
        self._stack, self._specs, self._report_progress, self._keep = stack, specs, report_progress, keep
        self._processes = Processes()
        self._thread = threading.Thread(target=self._make, daemon=True, name=f"environment of {stack.name}")

    def start(self) -> None:
        """Start making the environment, unless it exists or is being made."""
        if self._thread.ident is None and not environments.ready(self._stack):
            self._thread.start()

    def wait(self) -> None:
        """Wait until the environment is made, or failed; the error is raised when its cells need it."""
        if self._thread.ident is not None:
            self._thread.join()

    def close(self) -> None:
        """Cancel the installation, and delete the environment if it was made here and is not kept."""
        if self._thread.ident is None:
            return
        self._processes.stop()
        self._thread.join(_CLEANUP_TIMEOUT)
        drop_marked(self._stack, self._report_progress, keep=self._keep)

    def _make(self) -> None:
        watch_uv.set(self._processes.watch)
        targets = Targets((self._stack.name,), known={self._stack.name: self._stack})
        # `prepare` also probes it, which may compile the simulated accelerator.
        with contextlib.suppress(CancelledError), prepare(self._specs, targets, self._report_progress):
            if environments.ready(self._stack):
                (environments.environment_folder(self._stack) / MARKER).touch()
