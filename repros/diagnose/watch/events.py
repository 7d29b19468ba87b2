"""The folder of events, read while the program writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class EventFolder:
    """The files of all processes of one program, in a folder that exists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[Path, int] = {}
        self._lost: set[Path] = set()

    def poll(self) -> Iterator[Event]:
        """Yield the events that are new since the last call; a line that is not whole yet is left for the next.

        `lost` is the event of a process that could not write all of its events. The new events of several processes
        come in the order of their ranks: which process wrote first is chance.
        """
        yield from sorted(self._new(), key=lambda event: (event.get("rank") is None, event.get("rank") or 0))

    def _new(self) -> Iterator[Event]:
        for file in {*self.folder.glob("*.lost")} - self._lost:
            self._lost.add(file)
            yield {"event": "lost", "pid": int(file.stem)}
        for file in sorted(self.folder.glob("*.jsonl")):
            start = self._read.get(file, 0)
            try:
                with file.open("rb") as opened:
                    opened.seek(start)
                    data = opened.read()
            except OSError:
                continue  # another user's, or the folder is being cleaned
            end = data.rfind(b"\n") + 1
            self._read[file] = start + end
            for line in data[:end].splitlines():
                event = _parse(line)
                if event is not None:
                    yield event


def _parse(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None  # empty, or cut by a full disk
    return event if isinstance(event, dict) and "event" in event else None
