"""Finds and ends every process of a cell.

What belongs to a cell is told by its token: the cell's folder, which every process inherits in `REPROS_CELL`.
That finds processes that left the cell's process group and session (a daemon's double fork), which `killpg`
misses. A process that wiped its environment is still found as long as it stays in the session. One that did both
escapes; none of the libraries does.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

LADDER = ((signal.SIGINT, 2.0), (signal.SIGTERM, 1.5), *[(signal.SIGKILL, 2.0)] * 3)
"""Signals in order of force, each with the seconds that processes get to obey it.

SIGKILL more than once: what a process forked after it was listed is found the next time.
"""


def members(token: Path, session: int) -> list[psutil.Process]:
    """Return the living processes of the cell with that token, or in that session."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getsid(process.pid) == session or process.environ().get("REPROS_CELL") == str(token):
                found.append(process)
    return found


def end(token: Path, session: int) -> int:
    """Climb the ladder until no process of the cell lives.

    Returns:
        How many processes had to be ended.
    """
    ended: set[int] = set()
    for force, patience in LADDER:
        processes = members(token, session)
        if not processes:
            break
        ended.update(process.pid for process in processes)
        signal_all(processes, force)
        if force is not signal.SIGKILL:
            # A stopped process handles no signal but SIGKILL until it is continued.
            signal_all(processes, signal.SIGCONT)
        psutil.wait_procs(processes, timeout=patience)
    return len(ended)


def signal_all(processes: Iterable[psutil.Process], number: int) -> None:
    """Send a signal to each process that still lives."""
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            process.send_signal(number)
