"""Run a program with a recording in a folder, and read the recording step by step."""

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
class RecordedStep:
    """One step of a program, its evaluation or results after a step, or its final state, as its ranks recorded it."""

    number: int
    """From 1; for an evaluation or results, the number of the step before, or 0."""
    ranks: tuple[Mapping[str, Any], ...]
    """The records of the ranks that have it."""
    kind: str = STEP

    @property
    def key(self) -> tuple[int, int]:
        """The sort key of the program's order."""
        return self.number, _ORDER.index(self.kind)

    def where(self, offset: int = 0) -> str:
        """Return its name in a sentence.

        Args:
            offset: the number of steps before step 1.
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
        """Whether a rank's program seeds torch."""
        return any(rank["seeded"] for rank in self.ranks)


@dataclass(frozen=True)
class Recording:
    """The recording of a run, with its exit code and the failures of the recording itself."""

    folder: Path
    code: int
    failures: tuple[str, ...] = ()
    """Each failure in a clause."""
    is_complete: bool = True
    """Whether no event is lost."""

    def steps(self) -> Iterator[RecordedStep]:
        """Yield the steps, evaluations, results and the final state in their order.

        In a program without optimizer steps, each backward pass counts as a step.
        """
        processes = list(map(_find_records, sorted(self.folder.glob("*.jsonl"))))
        step_kind = STEP if any(STEP in dict(process.records) for process in processes) else "backward"
        by_rank: dict[int, list[_ProcessRecords]] = {}
        for process in sorted(processes, key=lambda process: process.time):
            by_rank.setdefault(process.rank, []).append(process)
        streams = [_read(by_rank[rank], step_kind) for rank in sorted(by_rank)]
        heads = [next(stream, None) for stream in streams]
        while any(heads):
            first = min(head.key for head in heads if head is not None)
            chosen = [number for number, head in enumerate(heads) if head is not None and head.key == first]
            steps = [head for number, head in enumerate(heads) if head is not None and number in chosen]
            yield RecordedStep(steps[0].number, tuple(rank for step in steps for rank in step.ranks), steps[0].kind)
            for number in chosen:
                heads[number] = next(streams[number], None)


@dataclass
class _ProcessRecords:
    """The records in a process's file."""

    file: Path
    rank: int
    time: float
    records: list[tuple[str, int]]
    """The kind and the offset in bytes of each."""


def _find_records(file: Path) -> _ProcessRecords:
    process = _ProcessRecords(file, 0, float("inf"), [])
    offset = 0
    with file.open("rb") as opened:
        for line in opened:
            if line.endswith(b"\n") and (head := _HEAD.match(line[:_LONGEST_HEAD])):
                process.rank = int(head[1]) if head[1] != b"null" else process.rank
                process.time = min(process.time, float(head[3]))
                process.records.append((head[4].decode(), offset))
            offset += len(line)
    return process


def _read(processes: Sequence[_ProcessRecords], step_kind: str) -> Iterator[RecordedStep]:
    """Yield the records of one rank's consecutive processes, in the order of its steps."""
    number, entries = 0, []
    for process in processes:
        for kind, offset in process.records:
            if kind in {step_kind, EVALUATION, RESULTS, END}:
                number += kind == step_kind
                entries.append((number, STEP if kind == step_kind else kind, process.file, offset))
    entries.sort(key=lambda entry: (entry[0], _ORDER.index(entry[1])))
    for (number, kind), group in itertools.groupby(entries, key=lambda entry: entry[:2]):
        records = []
        for *_, file, offset in group:
            with file.open("rb") as opened:
                opened.seek(offset)
                records.append(json.loads(opened.readline()))
        yield RecordedStep(number, (_merged(records),), kind)


def _merged(records: Sequence[dict[str, Any]]) -> Mapping[str, Any]:
    """Return one record of a rank's evaluations or results between two steps, or of its processes' final states."""
    merged = dict(records[0])
    for record in records[1:]:
        for field in ("passes", "trained", "optimizers", "results"):
            if field in record:
                merged[field] = [*merged[field], *record[field]]
        if "counts" in record:
            merged["counts"] = dict(Counter(merged["counts"]) + Counter(record["counts"]))
        for field in ("parameters", "buffers", "logged"):
            for name, value in record.get(field, {}).items():
                before = merged[field].get(name)
                merged[field][name] = value if before is None else before + value if isinstance(value, list) else before
        merged["cut"] = merged.get("cut", False) or record.get("cut", False)
    return merged


def record(
    command: Sequence[str], options: session.SessionOptions, request: Request, folder: Path, log: Path
) -> Recording:
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
