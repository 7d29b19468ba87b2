"""Results files in JSON Lines: one object per cell, appended immediately, so a killed runner loses no result.

:class:`RecordLine` is the format; its JSON Schema is `record.schema.json` in this folder. Lines contain no values
of environment variables and nothing else about the machine except its platform.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NotRequired, TypedDict, cast

from repros.engine.own_folder import make_folder
from repros.model import CellResult, Verdict
from repros.model.errors import ReprosError

SCHEMA = 1
"""Version of the format, incremented when a field changes its meaning, not for a new field."""

JSON_SCHEMA = Path(__file__).with_name("record.schema.json")
"""The JSON Schema of a record line."""

_REQUIRED = {"repro", "variant", "strategy", "device", "stack", "verdict", "reason", "seconds", "logs"}
_LONGEST_LINE = 2**20
"""Bytes; a typical line has 2,000."""


class StackRecord(TypedDict):
    """The environment of a cell."""

    name: str
    """The stack's name, or the interpreter's path for the user's own environment."""
    own: NotRequired[bool]
    """Whether it is the user's own environment, not a stack's."""
    python: str
    versions: Mapping[str, str]
    """Installed versions of the packages that the repro names."""
    notes: NotRequired[list[str]]
    """Names of the user's environment variables that were left out or may change the results, and packages that are
    imported from another place than their installed release; absent if there are none."""


class ExpectationRecord(TypedDict):
    """The documented outcome for these versions."""

    outcome: str
    affected: bool
    signature: str


class ProcessRecord(TypedDict):
    """How one process ended."""

    process: str
    ending: str
    code: int | None
    signal: str | None


class RepeatsRecord(TypedDict):
    """Number of runs, and of those with the line's verdict and signature."""

    n: int
    agreeing: int


class RecordLine(TypedDict):
    """One line of a results file."""

    schema: int
    repro: str
    title: str
    variant: str
    claim: str | None
    strategy: str
    device: str
    stack: StackRecord
    platform: str
    processes: int
    expected: ExpectationRecord
    launch: str | None
    observed: list[ProcessRecord]
    signature: str | None
    verdict: str
    repeats: RepeatsRecord | None
    reason: str
    seconds: float | None
    processor: NotRequired[float | None]
    """CPU seconds of all processes."""
    logs: str | None


def line(result: CellResult) -> RecordLine:
    """Return the record line of a result."""
    cell, observation, expectation = result.cell, result.observation, result.cell.expectation
    return {
        "schema": SCHEMA,
        "repro": cell.repro.id,
        "title": cell.repro.title,
        "variant": cell.variant.name,
        "claim": cell.variant.claim,
        "strategy": cell.strategy,
        "device": cell.device.value,
        "stack": _stack(result),
        "platform": cell.environment.platform or platform.platform(),
        "processes": cell.processes,
        "expected": {
            "outcome": expectation.outcome.value,
            "affected": expectation.affected,
            "signature": str(expectation.signature),
        },
        "launch": observation.launch.value if observation else None,
        "observed": [
            {"process": rank.name, "ending": rank.ending.value, "code": rank.code, "signal": rank.signal}
            for rank in (observation.ranks if observation else ())
        ],
        "signature": result.signature,
        "verdict": result.verdict.value,
        "repeats": {"n": result.repeats.n, "agreeing": result.repeats.agreeing} if result.repeats else None,
        "reason": result.reason,
        "seconds": round(observation.seconds, 2) if observation else None,
        "processor": round(observation.processor, 2) if observation else None,
        "logs": str(observation.folder) if observation else None,
    }


def _stack(result: CellResult) -> StackRecord:
    environment = result.cell.environment
    stack: StackRecord = {
        "name": environment.name,
        "own": environment.stack is None,
        "python": environment.python_version,
        "versions": _named_versions(result),
    }
    return {**stack, "notes": list(environment.notes)} if environment.notes else stack


def _named_versions(result: CellResult) -> dict[str, str]:
    """Return the installed versions of torch and of the packages that the repro names."""
    installed = result.cell.environment.versions
    names = sorted({"torch"} | result.cell.repro.named_packages)
    return {name: installed[name] for name in names if name in installed}


def is_own_environment(line: RecordLine) -> bool:
    """Return whether a cell ran in the user's own environment; older lines show it only by a path as the name."""
    return line["stack"].get("own", "/" in line["stack"]["name"])


def latest(lines: Iterable[RecordLine]) -> list[RecordLine]:
    """Return the last line of each cell, sorted by repro, then grouped by variant, strategy, device and stack.

    Groups are in the order of their first lines. From the cells `B x sim`, `A x cpu`, `B y sim` of one repro, the
    result is `B x sim`, `B y sim`, `A x cpu`. Concurrent cells are interleaved in the file.
    """
    by_cell = {_cell_key(line): line for line in lines}
    first_seen: dict[tuple[str, ...], int] = {}
    for cell in by_cell:
        for length in range(1, len(cell) + 1):
            first_seen.setdefault(cell[:length], len(first_seen))

    def position(cell: tuple[str, ...]) -> tuple[str | int, ...]:
        return (cell[0], *(first_seen[cell[: length + 1]] for length in range(1, len(cell))))

    return [by_cell[cell] for cell in sorted(by_cell, key=position)]


def disagreeing(lines: Iterable[RecordLine]) -> list[RecordLine]:
    """Return the last lines of the cells that ran and do not agree, including those that could not be judged."""
    return [line for line in latest(lines) if Verdict(line["verdict"]).disagrees]


def _cell_key(line: RecordLine) -> tuple[str, ...]:
    return (line["repro"], line["variant"], line["strategy"], line["device"], line["stack"]["name"])


class NotRecordedError(ReprosError):
    """A result that could not be written to the results file."""

    def __init__(self, path: Path, label: str, error: OSError) -> None:
        super().__init__(f"{path} cannot take the result of {label} ({error.strerror or error})")


def append(path: Path, result: CellResult) -> None:
    """Append one result as a whole line; several runners may append to the same file.

    An incomplete line of a killed runner is terminated first, so only that line is lost.

    Raises:
        NotRecordedError: the file cannot be written.
    """
    text = json.dumps(line(result), ensure_ascii=False) + "\n"
    try:
        make_folder(path.parent)
        _append_line(path, text)
    except OSError as error:
        raise NotRecordedError(path, result.cell.label, error) from error


def _append_line(path: Path, text: str) -> None:
    with path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
            text = "\n" + text
        # A lone surrogate (from undecodable bytes in a message) becomes a JSON escape.
        try:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            # A full disk leaves an incomplete line, which is truncated.
            with contextlib.suppress(OSError):
                os.ftruncate(file.fileno(), end)
            raise


def read(path: Path) -> Iterator[RecordLine]:
    """Yield the valid lines of a results file; skip others."""
    is_record = _record_test()
    with path.open("rb") as file:
        while raw := file.readline(_LONGEST_LINE + 1):
            if len(raw) > _LONGEST_LINE:
                continue
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if is_record(line):
                yield cast("RecordLine", line)


def read_last(path: Path) -> list[RecordLine]:
    """Return the last line of each cell in a results file of any size, in the order of first lines."""
    return list({_cell_key(line): line for line in read(path)}.values())


@cache
def _record_test() -> Callable[[Any], bool]:
    """Return a validator of record lines: every present field has its type."""
    import fastjsonschema  # noqa: PLC0415 - most commands read no results

    schema = _open(json.loads(JSON_SCHEMA.read_text(encoding="utf-8")))
    # Lines of older versions lack optional fields.
    validate = fastjsonschema.compile({**schema, "required": sorted(_REQUIRED)})

    def check(value: Any) -> bool:
        try:
            validate(value)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return check


def _open(schema: Any) -> Any:
    """Return a schema that allows additional fields, which later versions may write."""
    if isinstance(schema, list):
        return [_open(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _open(value) for key, value in schema.items() if (key, value) != ("additionalProperties", False)}


LATEST = Path(".repros/latest.jsonl")
"""Results of the latest run, in the working directory."""

_OPENING = b'{"schema"'
"""First bytes of every results file."""


def begin_results(file: Path, *, append: bool, option: str = "--results") -> BinaryIO:
    """Open a results file, truncated unless results are appended; other files are refused.

    While the returned file is open, another run may append to it but not truncate it.

    Args:
        file: the results file.
        append: whether to keep existing results.
        option: the option for another file, for messages.

    Raises:
        ReprosError: it is not a results file, cannot be written, or would be truncated while another run writes to it.
    """
    try:
        make_folder(file.parent)
        opened = file.open("ab+")
        opened.seek(0)
        if opened.read(len(_OPENING)) not in {b"", _OPENING}:
            opened.close()
            raise ReprosError(f"{file} is not a results file; name another with {option}.")
        if not append:
            if not _lock(opened, fcntl.F_WRLCK):
                opened.close()
                raise ReprosError(f"another run is writing to {file}; add --append, or name another with {option}.")
            opened.truncate(0)
        _lock(opened, fcntl.F_RDLCK)
    except FileExistsError as error:
        raise ReprosError(f"{file.parent} is not a folder; name another file with {option}.") from error
    except OSError as error:
        problem = f"{file} cannot be written ({error.strerror}); name another file with {option}."
        raise ReprosError(problem) from error
    return opened


def _lock(file: BinaryIO, kind: int) -> bool:
    """Acquire or change a lock on a whole file; return False if a conflicting lock is held.

    It is an open file description lock (`fcntl(2)`, F_OFD_SETLK): the kernel releases it with the process, and it does
    not conflict with the `flock` locks of appends. On file systems without locks this is a no-op.
    """
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0))
    except OSError as error:
        return error.errno not in {errno.EAGAIN, errno.EACCES}
    return True


def read_results(file: Path, *, allow_empty: bool = False) -> list[RecordLine]:
    """Read a results file.

    Raises:
        ReprosError: it cannot be read, or has no result although `allow_empty` is false.
    """
    try:
        lines = read_last(file)
    except OSError as error:
        problem = f"{file} cannot be read ({error.strerror}); expected the results of a 'repros run'."
        raise ReprosError(problem) from error
    if not lines and not allow_empty:
        raise ReprosError(f"{file} holds no result; expected the results of a 'repros run'.")
    return lines
