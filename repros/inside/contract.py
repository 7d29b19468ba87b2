"""The contract between this project's own process and those that it starts: environment variables, and a folder.

Both sides import it. The settings of the simulated GPUs are the simulator's (`repros/simulated_gpus/variables.py`), and
`REPROS_RUNNER` is the reaper's (`repros/engine/launch/reaper.py`), a program that imports nothing of this project.
"""

from __future__ import annotations

import os

CELL = "REPROS_CELL"
"""The folder of the cell that a process belongs to: it records there what it does, and is ended with the cell."""
LOG = "REPROS_LOG"
"""The file that a new process inherits as stdout and stderr, from which it turns to a log of its own."""
SCRIPT = "REPROS_SCRIPT"
"""The path of the cell's script: a process that runs it is a rank, and not a library's helper."""
HOOKED = "REPROS_HOOKED"
"""Set once one process of the cell records: those after it are not its main process."""
SERVER = "REPROS_SERVER"
"""The mark of a warm server, by which what it has forked is found after its death."""

WATCH = "REPROS_WATCH"
"""The folder of the events of a program under `repros watch`: a process that has it observes itself."""
WATCH_EVERY = "REPROS_WATCH_EVERY"
"""Steps between two close looks, once the doubling ones lie further apart; 0 for doubling alone."""
WATCH_ONLY = "REPROS_WATCH_ONLY"
"""The checks that may speak, or the first words of their names, with commas between; empty for all."""
WATCH_SKIP = "REPROS_WATCH_SKIP"
"""The checks that may not, likewise."""

SIM = "REPROS_SIM"
"""`cuda` in a process that gets simulated GPUs when it imports torch."""

OF_A_CELL = (CELL, LOG, SCRIPT, HOOKED, SERVER)
OF_THE_WATCH = (WATCH, WATCH_EVERY, WATCH_ONLY, WATCH_SKIP)

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
"""The folder whose `sitecustomize.py` acts on these variables in every Python process that has it on its path."""


def python_path(present: str | None) -> str:
    """Return a `PYTHONPATH` with `SITE` in front of the present one."""
    return path_with(SITE, present)


def path_with(folder: str, present: str | None) -> str:
    """Return a search path with a folder in front of the present one, and nowhere else.

    An empty entry stays: for Python and for a shell it is the working directory.
    """
    places = present.split(os.pathsep) if present else []
    return os.pathsep.join([folder, *(place for place in places if place != folder)])
