"""A program's run with its recording: started, kept in a folder, and read step by step."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.diagnose.compare.inside.request import Request, write_request
from repros.diagnose.watch import session
from repros.diagnose.watch.events import Event
from repros.model.errors import ReprosError

_HEAD = re.compile(
    rb'\{"event": "recorded", "rank": (null|\d+), "pid": (\d+), "time": ([\d.e+]+), '
    rb'"kind": "(step|backward|evaluation|results|end)"'
)
_LONGEST_HEAD = 400


STEP, EVALUATION, RESULTS, END = "step", "evaluation", "results", "end"
_ORDER = (STEP, EVALUATION, RESULTS, END)


@dataclass(frozen=True)
class Step:
    """One step of a program, what it evaluated or got after it, or how it ended: as its ranks recorded it, in order."""

    number: int
    """From 1; of what is no step, the number of the step before, 0 for none."""
    ranks: tuple[Mapping[str, Any], ...]
    """Of the ranks that have made it."""
    kind: str = STEP

    @property
    def key(self) -> tuple[int, int]:
        """Its place in the program's order."""
        return self.number, _ORDER.index(self.kind)

    def where(self, offset: int = 0) -> str:
        """Return what a sentence calls it.

        Args:
            offset: how many steps were made before step 1.
        """
        number = self.number + offset
        if self.kind == END:
            return "the end"
        if self.kind == RESULTS:
            return f"after step {number}" if number else "before step 1"
        if self.kind == EVALUATION:
            return f"the evaluation after step {number}" if number else "the evaluation before step 1"
        return f"step {number}"

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
        """Yield the steps, evaluations and the end in their order.

        In a program that makes no step of an optimizer, each backward counts as one.
        """
        found = list(map(_find_lines, sorted(self.folder.glob("*.jsonl"))))
        kind = STEP if any(STEP in dict(each.lines) for each in found) else "backward"
        by_rank: dict[int, list[_Lines]] = {}
        for each in sorted(found, key=lambda lines: lines.time):
            by_rank.setdefault(each.rank, []).append(each)
        streams = [_read(by_rank[rank], kind) for rank in sorted(by_rank)]
        heads = [next(stream, None) for stream in streams]
        while any(heads):
            first = min(head.key for head in heads if head is not None)
            chosen = [place for place, head in enumerate(heads) if head is not None and head.key == first]
            steps = [head for place, head in enumerate(heads) if head is not None and place in chosen]
            yield Step(steps[0].number, tuple(rank for step in steps for rank in step.ranks), steps[0].kind)
            for place in chosen:
                heads[place] = next(streams[place], None)


@dataclass
class _Lines:
    """Where a process's file has its records."""

    file: Path
    rank: int
    time: float
    lines: list[tuple[str, int]]
    """The kind and the place of each."""


def _find_lines(file: Path) -> _Lines:
    found = _Lines(file, 0, float("inf"), [])
    place = 0
    with file.open("rb") as opened:
        for line in opened:
            if line.endswith(b"\n") and (head := _HEAD.match(line[:_LONGEST_HEAD])):
                found.rank = int(head[1]) if head[1] != b"null" else found.rank
                found.time = min(found.time, float(head[3]))
                found.lines.append((head[4].decode(), place))
            place += len(line)
    return found


def _read(processes: Sequence[_Lines], kind: str) -> Iterator[Step]:
    """Yield what the processes of one rank have recorded, one after another, in the order of its steps."""
    number, found = 0, []
    for process in processes:
        for each, place in process.lines:
            if each in {kind, EVALUATION, RESULTS, END}:
                number += each == kind
                found.append((number, STEP if each == kind else each, process.file, place))
    found.sort(key=lambda line: (line[0], _ORDER.index(line[1])))
    for (number, each), lines in itertools.groupby(found, key=lambda line: line[:2]):
        records = []
        for *_, file, place in lines:
            with file.open("rb") as opened:
                opened.seek(place)
                records.append(json.loads(opened.readline()))
        yield Step(number, (_merged(records),), each)


def _merged(records: Sequence[dict[str, Any]]) -> Mapping[str, Any]:
    """Return one record of what a rank evaluated or got between two steps, or of the ends of its processes."""
    merged = dict(records[0])
    for record in records[1:]:
        for field in ("passes", "trained", "optimizers", "results"):
            if field in record:
                merged[field] = [*merged[field], *record[field]]
        if "counts" in record:
            merged["counts"] = dict(Counter(merged["counts"]) + Counter(record["counts"]))
        for field in ("parameters", "buffers", "logged"):
            for name, found in record.get(field, {}).items():
                before = merged[field].get(name)
                merged[field][name] = found if before is None else before + found if isinstance(found, list) else before
        merged["cut"] = merged.get("cut", False) or record.get("cut", False)
    return merged


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
