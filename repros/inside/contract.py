"""The interface between the engine and the processes that it starts: environment variables, and the folder `SITE`.

Both sides import it. The variables of the simulated GPUs are in `repros/simulated_gpus/variables.py`. `REPROS_RUNNER`
is in `repros/engine/launch/reaper.py`, a program that imports nothing of this project.
"""

from __future__ import annotations

import os

CELL = "REPROS_CELL"
"""The folder of the job of a process: the process writes its events there, and is killed at the end of the job."""
LOG = "REPROS_LOG"
"""The file that a new process inherits as stdout and stderr, until it redirects them to its own log."""
SCRIPT = "REPROS_SCRIPT"
"""The path of the job's script: a process that runs it is a rank, any other a helper of a library."""
HOOKED = "REPROS_HOOKED"
"""Set once the main process of the job has started recording."""
SERVER = "REPROS_SERVER"
"""The token of a warm server, which identifies its forked processes after its death."""

WATCH = "REPROS_WATCH"
"""The event folder of a program under `repros watch`; a process with this variable monitors itself."""
WATCH_MODULE = "REPROS_WATCH_MODULE"
"""The module whose function `install` makes a process monitor itself; nothing in `inside` imports it by name."""
WATCH_EVERY = "REPROS_WATCH_EVERY"
"""Maximum number of steps between two full inspections, or 0 for steps 1, 2, 4, 8, ... only."""
WATCH_ONLY = "REPROS_WATCH_ONLY"
"""Enabled checks, by name or prefix, comma-separated; empty for all."""
WATCH_SKIP = "REPROS_WATCH_SKIP"
"""Disabled checks, by name or prefix, comma-separated."""

SIM = "REPROS_SIM"
"""`cuda` in a process whose torch gets simulated GPUs at import."""

JOB_VARIABLES = (CELL, LOG, SCRIPT, HOOKED, SERVER)
WATCH_VARIABLES = (WATCH, WATCH_MODULE, WATCH_EVERY, WATCH_ONLY, WATCH_SKIP)

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
"""The folder of `sitecustomize.py`, which reads these variables in every Python process that has it on its path."""


def python_path(current: str | None) -> str:
    """Return a `PYTHONPATH` that begins with `SITE`."""
    return path_with(SITE, current)


def path_with(folder: str, current: str | None) -> str:
    """Return a search path that begins with a folder and has it nowhere else.

    Empty entries are preserved: Python and shells read them as the working directory.
    """
    entries = current.split(os.pathsep) if current else []
    return os.pathsep.join([folder, *(entry for entry in entries if entry != folder)])
