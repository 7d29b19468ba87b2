"""Limits of the log files of a running job.

Logs are plain files that the processes append to, not pipes: an orphan that keeps one open does not block the runner,
and they survive a killed runner. Of a file that grows past the cap only the head and the latest lines remain. During
the run its middle becomes a hole, which frees disk space without moving the end to which writers append; after the run
the hole is cut out.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from repros.engine.launch import untrusted

CAP = 2_000_000
"""Bytes of disk that one log may take before it is cut."""
_HEAD = 200_000
_TAIL = 100_000
_MOST_OF_RUN = 50_000_000
"""Bytes that are read of all logs of a run."""
# linux/falloc.h: FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_PUNCH_HOLE = 0x03
_BLOCK = 512
"""Unit of `st_blocks`, in bytes, on every file system."""


def trim(folder: Path) -> None:
    """Free the middle of every log of a running job that takes more disk than the cap."""
    for path, size, taken in _logs(folder):
        if taken > CAP:
            with contextlib.suppress(OSError):
                _punch(folder, path, _HEAD, size - _TAIL)


def compact(folder: Path) -> None:
    """Cut every log longer than the cap to its head and tail; no process may write to it any more."""
    for path, size, _ in _logs(folder):
        if size > CAP:
            with contextlib.suppress(OSError):
                _cut(folder, path, size)


def find(folder: Path) -> Iterator[Path]:
    """Yield the logs that a run may have, the main process's first."""
    yield folder / "main.log"
    processes = folder / "processes"
    yield from (processes / name / "log.txt" for name in untrusted.names(folder, processes))


def read(folder: Path, files: Iterable[Path]) -> Iterator[bytes]:
    """Yield the contents of logs of a run, with a line in the place of what is too long."""
    left = _MOST_OF_RUN
    for file in files:
        with contextlib.suppress(OSError):
            head, tail, left_out = untrusted.read_ends(folder, file, min(CAP, left))
            left = max(0, left - len(head) - len(tail))
            yield head + (_left_out(left_out) if left_out else b"") + tail


def _logs(folder: Path) -> Iterator[tuple[Path, int, int]]:
    """Yield the logs of a run with their length and their disk usage, in bytes."""
    for path in find(folder):
        try:
            with untrusted.open_file(folder, path) as file:
                status = os.fstat(file.fileno())
        except OSError:
            continue
        yield path, status.st_size, status.st_blocks * _BLOCK


def _punch(folder: Path, path: Path, start: int, end: int) -> None:
    """Turn a part of a file into a hole; has no effect on macOS and on file systems without holes."""
    if sys.platform != "linux" or end <= start:
        return
    length = ctypes.c_int64(end - start)
    with untrusted.open_file(folder, path, writable=True) as file:
        ctypes.CDLL(None).fallocate(file.fileno(), _PUNCH_HOLE, ctypes.c_int64(start), length)


def _cut(folder: Path, path: Path, size: int) -> None:
    """Replace a file's content by its head, a line with the number of bytes left out, and its tail."""
    with untrusted.open_file(folder, path, writable=True) as file:
        file.seek(size - _TAIL)
        tail = file.read(_TAIL)
        file.seek(_HEAD - 1)
        line_break = b"" if file.read(1) == b"\n" else b"\n"
        file.truncate(_HEAD)
        file.seek(0, os.SEEK_END)
        file.write(line_break + _left_out(size - _HEAD - len(tail)) + tail)


def _left_out(number: int) -> bytes:
    return f"[... {number:,} bytes left out ...]\n".encode()


def tail(folder: Path, path: Path | None, lines: int = 20) -> list[str]:
    """Return the last lines of a log of a run, with undecodable bytes replaced; empty if there is no log."""
    if path is None:
        return []
    with contextlib.suppress(OSError):
        begin = max(0, untrusted.size(folder, path) - _TAIL)
        return untrusted.read(folder, path, _TAIL, begin).decode("utf-8", "replace").splitlines()[-lines:]
    return []
