"""Processes that a cell left behind, found without the engine's own means."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import psutil

_PATIENCE = 5.0
"""Seconds within which everything has ended, on a machine whose processors are free."""


def slowness() -> float:
    """Return how many processes wait for each processor: the factor by which everything takes longer."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def patience() -> float:
    """Return the seconds within which everything has ended."""
    return _PATIENCE * slowness()


class Violation(Exception):  # noqa: N818 - not an error of these programs but what they look for
    """Something that must never happen."""


def living_processes(folder: Path) -> list[int]:
    """Return the processes of the cells below a folder that still live, from the files in which they registered."""
    registered = {int(file.name.removeprefix("alive-")): file.read_text() for file in folder.rglob("alive-*")}
    return [pid for pid, started in registered.items() if _lives(pid, started)]


def processes_with(variable: str) -> list[int]:
    """Return the processes with this text, such as `NAME=value`, in their environ."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and variable.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def check_no_process_left(folder: Path, variable: str | None = None, seconds: float = 0.0) -> None:
    """Raise if a process of the cells below the folder, or with that variable, lives after that number of seconds."""
    until = time.monotonic() + seconds
    while True:
        marked = processes_with(variable) if variable else []
        left = {*living_processes(folder), *processes_with(f"REPROS_CELL={folder}"), *marked}
        if not left:
            return
        if time.monotonic() >= until:
            raise Violation(f"left running: {[_describe_process(pid) for pid in left]}")
        time.sleep(0.05)


def wait_for(folder: Path, name: str, seconds: float = 60.0) -> Path | None:
    """Wait for the toy to write a file of this name below the folder; return None if it never does."""
    until = time.monotonic() + seconds * slowness()
    while time.monotonic() < until:
        if found := next(folder.rglob(name), None):
            return found
        time.sleep(0.01)
    return None


def _lives(pid: int, started: str) -> bool:
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return fields[19] == started and fields[0] not in "ZX"
    return False


def _describe_process(pid: int) -> str:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return f"{pid} {process.status()} parent {process.ppid()} {' '.join(process.cmdline())[:150]}"
    return str(pid)
