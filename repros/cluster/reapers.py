"""A second, detached reaper on a node: Ray kills the children of a worker process, among them the first reaper."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

from repros.engine.launch import reaper

_DETACHED = """\
import os, runpy, sys
if os.fork():
    os._exit(0)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program in a detached process, which is not a child of its starter."""


class DoubleReaper(reaper.Reaper):
    """The reaper, and a second, detached one that gets the same messages."""

    def __init__(self) -> None:
        super().__init__()
        self._second: BinaryIO | None = None

    @classmethod
    def install(cls) -> None:
        """Register all cells that this process starts from now on with a new pair of reapers."""
        reaper.of_this_runner = cls()

    def add_run(self, workdir: Path, session: int | None = None) -> None:
        """Report the start of a cell; see :meth:`repros.engine.launch.reaper.Reaper.add_run`."""
        with self._lock:
            if self._second is None:
                self._second = _start_detached(self.token)
        super().add_run(workdir, session)

    def close(self) -> None:
        """Make both processes search a last time and end."""
        super().close()
        with self._lock:
            if self._second is not None:
                self._second.close()

    def _send(self, workdir: str, session: int | None) -> None:
        super()._send(workdir, session)
        with contextlib.suppress(OSError):
            if self._second is not None and not self._second.closed:
                self._second.write((json.dumps([workdir, session]) + "\n").encode())


def _start_detached(token: str) -> BinaryIO:
    """Start a detached reaper, and return the pipe that it reads."""
    there, here = os.pipe()
    try:
        command = [sys.executable, "-I", "-S", "-c", _DETACHED, reaper.__file__, token]
        null = subprocess.DEVNULL
        subprocess.run(
            command, stdin=there, stdout=null, stderr=null, cwd="/", env={}, start_new_session=True, check=True
        )
    except BaseException:
        os.close(here)
        raise
    finally:
        os.close(there)
    os.set_blocking(here, False)  # a stopped reaper reads nothing
    return os.fdopen(here, "wb", buffering=0)
