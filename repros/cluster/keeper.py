"""The reaper of a node's process, twice: Ray kills the children of a worker that it ends, and the reaper is one."""

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
"""Runs a program in a process that is no child of the one that started it."""


class Keeper(reaper.Reaper):
    """The reaper, and a second one that gets the same messages and is no child of this process."""

    def __init__(self) -> None:
        """Choose the token; the processes start with the first cell."""
        super().__init__()
        self._second: BinaryIO | None = None

    @classmethod
    def install(cls) -> None:
        """Let all cells that this process starts from now on be kept by a new one."""
        reaper.of_this_runner = cls()

    def add_run(self, workdir: Path, session: int | None = None) -> None:
        """Report that a cell begins; :meth:`repros.engine.launch.reaper.Reaper.add_run` explains it."""
        with self._lock:
            if self._second is None:
                self._second = _start_detached(self.token)
        super().add_run(workdir, session)

    def close(self) -> None:
        """Let both processes search one last time and end."""
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
    """Start a reaper, and return the pipe that it reads."""
    there, here = os.pipe()
    try:
        command = [sys.executable, "-I", "-S", "-c", _DETACHED, reaper.__file__, token]
        nowhere = subprocess.DEVNULL
        subprocess.run(
            command, stdin=there, stdout=nowhere, stderr=nowhere, cwd="/", env={}, start_new_session=True, check=True
        )
    except BaseException:
        os.close(here)
        raise
    finally:
        os.close(there)
    os.set_blocking(here, False)  # a stopped one reads nothing
    return os.fdopen(here, "wb", buffering=0)
