"""Limits of the log files of a running job.

Logs are plain files that the processes append to, not pipes: an orphan that keeps one open does not block the runner,
and they survive a killed runner. Of a file that grows past the cap only the head and the latest lines remain. During
the run its middle becomes a hole, which frees disk space without moving the end to which writers append; after the run
the hole is cut out.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

CAP = 2_000_000
"""Bytes of disk that one log may take before it is cut."""
_HEAD = 200_000
_TAIL = 100_000
# linux/falloc.h: FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_PUNCH_HOLE = 0x03
_BLOCK = 512
"""Unit of `st_blocks`, in bytes, on every file system."""


def trim(folder: Path) -> None:
    """Free the middle of every log of a running job that takes more disk than the cap."""
    for path, size, taken in _logs(folder):
        if taken > CAP:
            _punch(path, _HEAD, size - _TAIL)


def compact(folder: Path) -> None:
    """Cut every log longer than the cap to its head and tail; no process may write to it any more."""
    for path, size, _ in _logs(folder):
        if size > CAP:
            _cut(path, size)


def _logs(folder: Path) -> Iterator[tuple[Path, int, int]]:
    """Yield the logs of a run with their length and their disk usage, in bytes."""
    for path in (folder / "main.log", *folder.glob("processes/*/log.txt")):
        try:
            status = path.stat()
        except OSError:
            continue
        yield path, status.st_size, status.st_blocks * _BLOCK


def _punch(path: Path, start: int, end: int) -> None:
    """Turn a part of a file into a hole; has no effect on macOS and on file systems without holes."""
    if sys.platform != "linux" or end <= start:
        return
    length = ctypes.c_int64(end - start)
    with path.open("rb+") as file:
        ctypes.CDLL(None).fallocate(file.fileno(), _PUNCH_HOLE, ctypes.c_int64(start), length)


def _cut(path: Path, size: int) -> None:
    """Replace a file's content by its head, a line with the number of bytes left out, and its tail."""
    with path.open("rb+") as file:
        file.seek(size - _TAIL)
        tail = file.read()
        file.seek(_HEAD - 1)
        line_break = b"" if file.read(1) == b"\n" else b"\n"
        file.truncate(_HEAD)
        file.seek(0, os.SEEK_END)
        file.write(line_break + f"[... {size - _HEAD - len(tail):,} bytes left out ...]\n".encode() + tail)


def tail(path: Path | None, lines: int = 20) -> list[str]:
    """Return the last lines of a log, with undecodable bytes replaced; empty if there is no log."""
    if path is None or not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        text = file.read().decode("utf-8", "replace")
    return text.splitlines()[-lines:]
