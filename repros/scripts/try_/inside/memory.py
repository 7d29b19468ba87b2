"""Memory that no limit of a process counts, such as what processes share; and what a cgroup has counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_PERIOD = 0.25
"""Seconds between two looks at the shared memory."""
_STACK = 64 * 2**20
"""Bytes of private memory of a process that the limit on its data does not count."""
_EVENTS = ("memory.events", "memory.oom_control")
"""Files of a cgroup, of version 2 and of version 1, with the number of processes that the kernel killed in it."""


def was_exceeded(settings: dict[str, Any]) -> bool:
    """Return whether the kernel has killed a process of the cgroup for its memory; False without a cgroup."""
    for name in _EVENTS if settings["group"] else ():
        try:
            lines = Path(settings["group"], name).read_text("ascii").splitlines()
        except OSError:
            continue
        return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in lines)
    return False


def supervise(settings: dict[str, Any], kill: Callable[[str], None]) -> None:
    """Look again and again at the memory of all processes of the PID namespace.

    Args:
        settings: those of the sandbox.
        kill: called with what is too large as soon as something is.
    """
    most = settings["shared_memory"]
    while True:
        time.sleep(_PERIOD)
        processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        # The exact share of each takes the kernel longer to find than what all have mapped, which counts it repeatedly.
        mapped = sum(_kilobytes(process / "status", b"RssShmem:") for process in processes) * 1024
        # Twice, since a fork between the readings of two processes counts their pages in both.
        is_more = mapped > most and all(_shared(processes) > most for _ in range(2))
        if is_more or _files_in_memory(processes) > most:
            kill("shared memory")
        # What grows like a stack is private and no data.
        private = max((_kilobytes(process / "status", b"RssAnon:") for process in processes), default=0) * 1024
        if private > settings["memory"] + _STACK:
            kill("private memory")


def _shared(processes: Iterable[Path]) -> int:
    return sum(_kilobytes(process / "smaps_rollup", b"Pss_Shmem:") for process in processes) * 1024


def _kilobytes(file: Path, name: bytes) -> int:
    try:
        return sum(int(line.split()[1]) for line in file.read_bytes().splitlines() if line.startswith(name))
    except OSError:  # it has ended
        return 0


def _files_in_memory(processes: Iterable[Path]) -> int:
    """Return the bytes of the files without a name on any file system that processes have open."""
    sizes = {}
    for process in processes:
        for opened in _opened(process):
            try:
                if os.readlink(opened).startswith("/memfd:"):
                    status = opened.stat()
                    sizes[status.st_ino] = status.st_blocks * 512
            except OSError:  # closed
                continue
    return sum(sizes.values())


def _opened(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:  # it has ended
        return []
