"""Keeps a cell's logs small while it runs.

Logs are plain files that the processes append to, not pipes: an orphan that holds one open blocks nobody, and they
survive a killed runner. A file that grows past the cap is cut back to its head and its latest lines.
"""

from __future__ import annotations

import os
from pathlib import Path

CAP = 2_000_000
"""Bytes that one log may have before it is cut."""
_HEAD = 200_000
_TAIL = 100_000


def trim(folder: Path) -> None:
    """Cut every log below the cell's folder that has grown past the cap."""
    for path in (folder / "main.log", *folder.glob("processes/*/log.txt")):
        try:
            size = path.stat().st_size
        except OSError:
            continue
        if size > CAP:
            _cut(path, size)


def _cut(path: Path, size: int) -> None:
    """Keep head and tail. Writers append, so they go on at the new end; what they write meanwhile may be lost."""
    with path.open("rb+") as file:
        file.seek(_HEAD)
        head_ends_with = file.read(1)
        file.seek(size - _TAIL)
        tail = b""
        # To the end as it is now: the last lines of a process that ends meanwhile are the ones that matter.
        while more := file.read(_TAIL):
            size += max(0, len(tail) + len(more) - _TAIL)
            tail = (tail + more)[-_TAIL:]
        file.truncate(_HEAD)
    left_out = size - _HEAD - len(tail)
    line_break = b"" if head_ends_with == b"\n" else b"\n"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(line_break + f"[... {left_out:,} bytes left out ...]\n".encode() + tail)


def tail(path: Path | None, lines: int = 20) -> list[str]:
    """Return the last lines of a log, garbage bytes replaced; empty where there is none."""
    if path is None or not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        text = file.read().decode("utf-8", "replace")
    return text.splitlines()[-lines:]
