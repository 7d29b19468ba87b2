"""A program's run with its recording: started, kept in a folder, and read step by step."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.errors import ReprosError
from repros.watch import session
from repros.watch.events import Event
from repros.watch.inside.record.request import Request, write_request

_HEAD = re.compile(
    rb'\{"event": "recorded", "rank": (null|\d+), "pid": (\d+), "time": ([\d.e+]+), "kind": "(step|backward)"'
)
_LONGEST_HEAD = 400


@dataclass(frozen=True)
class Step:
    """One step of a program: what its ranks recorded of it, the lowest rank first."""

    number: int
    """From 1."""
    ranks: tuple[Mapping[str, Any], ...]
    """Of the ranks that have made it."""

    @property
    def is_seeded(self) -> bool:
        """Whether some rank has seeded torch by itself."""
        return any(each["seeded"] for each in self.ranks)


@dataclass(frozen=True)
class Recording:
    """What a run left: its exit code, its folder, and what became of the recording itself."""

    folder: Path
    code: int
    failures: tuple[str, ...] = ()
    """Failures of the recording, each in a clause."""
    is_whole: bool = True
    """Whether no event is lost."""

    def steps(self) -> Iterator[Step]:
        """Yield the steps; in a program that makes no step of an optimizer, each backward counts as one."""
        found = list(map(_find_lines, sorted(self.folder.glob("*.jsonl"))))
        kind = "step" if any(each.lines["step"] for each in found) else "backward"
        by_rank: dict[int, list[_Lines]] = {}
        for each in sorted(found, key=lambda lines: lines.time):
            if each.lines[kind]:
                by_rank.setdefault(each.rank, []).append(each)
        streams = [_read(by_rank[rank], kind) for rank in sorted(by_rank)]
        if streams:
            for number, ranks in enumerate(itertools.zip_longest(*streams), 1):
                yield Step(number, tuple(rank for rank in ranks if rank is not None))


@dataclass
class _Lines:
    """Where a process's file has its records."""

    file: Path
    rank: int
    time: float
    lines: dict[str, list[int]]


def _find_lines(file: Path) -> _Lines:
    found = _Lines(file, 0, float("inf"), {"step": [], "backward": []})
    place = 0
    with file.open("rb") as opened:
        for line in opened:
            if line.endswith(b"\n") and (head := _HEAD.match(line[:_LONGEST_HEAD])):
                found.rank = int(head[1]) if head[1] != b"null" else found.rank
                found.time = min(found.time, float(head[3]))
                found.lines[head[4].decode()].append(place)
            place += len(line)
    return found


def _read(processes: Sequence[_Lines], kind: str) -> Iterator[Mapping[str, Any]]:
    for process in processes:
        with process.file.open("rb") as opened:
            for place in process.lines[kind]:
                opened.seek(place)
                yield json.loads(opened.readline())


def record(command: Sequence[str], options: session.Options, request: Request, folder: Path, log: Path) -> Recording:
    """Run a program to its end and record it.

    Args:
        command: the program and its arguments.
        options: how it is started; all steps are looked at.
        request: what to record.
        folder: an empty folder of this user's alone, which keeps the recording.
        log: the file that takes what the program writes.

    Raises:
        ReprosError: the program cannot be started, or the log cannot be written.
    """
    failures: list[str] = []
    lost: set[int] = set()

    def take(event: Event) -> None:
        if event["event"] == "failed":
            failures.append(f"{event['where']} ({event['error']})")
        elif event["event"] == "lost":
            lost.add(event["pid"])

    write_request(str(folder), request)
    try:
        output = log.open("wb")
    except OSError as error:
        raise ReprosError(f"{log} cannot be written ({error.strerror}); make room, or run elsewhere.") from error
    with output:
        code = session.run_in(folder, command, options, take, output)
    return Recording(folder, code, tuple(dict.fromkeys(failures)), not lost)
