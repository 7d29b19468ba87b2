"""What is left of a cell, told without the engine's own means."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

PATIENCE = 5.0


class Violation(Exception):  # noqa: N818 - it is what a storm looks for
    """Something that must never happen."""


def survivors(folder: Path) -> list[int]:
    """Return the processes of the cells below the folder that wrote down that they live, and still do."""
    return [
        int(file.name.removeprefix("witness-"))
        for file in folder.rglob("witness-*")
        if _lives(int(file.name.removeprefix("witness-")), file.read_text())
    ]


def bearers(mark: str) -> list[int]:
    """Return the processes with this text in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def nobody_left(folder: Path, mark: str | None = None, patience: float = 0.0) -> None:
    """Raise if a process of the cells below the folder lives after that many seconds."""
    until = time.monotonic() + patience
    while True:
        left = {*survivors(folder), *bearers(f"REPROS_CELL={folder}"), *(bearers(mark) if mark else ())}
        if not left:
            return
        if time.monotonic() >= until:
            raise Violation(f"left running: {[_told(pid) for pid in left]}")
        time.sleep(0.05)


def wait_for(folder: Path, name: str, patience: float = 60.0) -> Path | None:
    """Wait for the toy to write a file below the folder; None if it never does."""
    until = time.monotonic() + patience
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


def _told(pid: int) -> str:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return f"{pid} {process.status()} parent {process.ppid()} {' '.join(process.cmdline())[:150]}"
    return str(pid)
