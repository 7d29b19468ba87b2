"""The folder of events, read while the program writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repros.engine.launch import untrusted

Event = dict[str, Any]
_NAMED = {".lost": "lost", ".old": "too_old"}
"""The events that are a file's name, after the pid, by its suffix."""
_MOST_READ = 100_000_000
"""Bytes that one poll reads of a file; the next one continues."""


class EventFolder:
    """The files of all processes of one program, in a folder that exists and that the program may write."""

    def __init__(self, folder: Path, name: str = "", most: int | None = None) -> None:
        """Begin to read.

        Args:
            folder: the folder of the program's run.
            name: the folder of the events below it; empty for the folder itself.
            most: bytes to read of all its files; None for no limit. What follows is not read.
        """
        self._run, self.folder = folder, folder / name
        self._read: dict[Path, int] = {}
        self._named: set[Path] = set()
        """The files whose names were events."""
        self._left = most

    def poll(self) -> Iterator[Event]:
        """Yield the events that are new since the last call; a line that is not whole yet is left for the next.

        `lost` is the event of a process that could not write all of its events, `too_old` that of a process whose
        Python the watch does not support. The new events of several processes
        come in the order of their ranks: which process wrote first is chance.
        """
        yield from sorted(self._new(), key=lambda event: (event.get("rank") is None, event.get("rank") or 0))

    def _new(self) -> Iterator[Event]:
        files = [self.folder / name for name in untrusted.names(self._run, self.folder)]
        for file in {file for file in files if file.suffix in _NAMED and file.stem.isdecimal()} - self._named:
            self._named.add(file)
            yield {"event": _NAMED[file.suffix], "pid": int(file.stem)}
        for file in (file for file in files if file.suffix == ".jsonl"):
            start = self._read.get(file, 0)
            try:
                data = untrusted.read(self._run, file, self._most(), start)
            except OSError:
                continue  # another user's, no regular file, or the folder is being cleaned
            end = data.rfind(b"\n") + 1
            if not end and len(data) == self._most():  # no line of the watch is as long
                end = len(data)
            if self._left is not None:
                self._left -= end
            self._read[file] = start + end
            for line in data[:end].splitlines():
                event = _parse(line)
                if event is not None:
                    yield event

    def _most(self) -> int:
        """Return the bytes that may be read of a file now."""
        return _MOST_READ if self._left is None else min(_MOST_READ, self._left)


def _parse(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None  # empty, or cut by a full disk
    if not isinstance(event, dict) or "event" not in event:
        return None
    return event if isinstance(event.get("rank"), int | None) else None
