"""Find and read the dumps of PyTorch's flight recorder, recognised by their content, not by their names.

`torch/csrc/distributed/c10d/FlightRecorder.hpp` writes them, from torch 2.2 on. Each process has a ring buffer of its
last collectives (`TORCH_NCCL_TRACE_BUFFER_SIZE`, later also `TORCH_FR_BUFFER_SIZE`). It is written as a pickle into a
file whose name ends in the rank, when a collective times out or on request, and as JSON through `_dump_fr_trace_json`.
Versions 1 and 2.0 called the number of a collective `seq_id`; the first dumps were a list of entries.
"""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from repros.model.errors import ReprosError

if TYPE_CHECKING:
    from repros.diagnose.match.hang.calls import Dump

MOST_BYTES = 256 * 2**20
"""Of one dump. A call with its stack has 1 to 4 KB, so this is about 100,000 calls; the default buffer has 2,000."""
MOST_DUMPS = 100_000
STDIN = Path("-")
_HEAD = 2**16
"""Bytes of a file that are read to recognise a dump."""
_PROTOCOLS = (b"\x02", b"\x03", b"\x04", b"\x05")
_RANK = r"(\d+)(?:\.(?:json|pickle|pkl|pt|bin|txt))?$"


def is_dump(path: Path) -> bool:
    """Whether a file is a flight recorder's dump, by its first bytes.

    Raises:
        ReprosError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise ReprosError(f"{path} cannot be read ({error.strerror}).") from error
    if head[:1] == b"\x80":  # the operation PROTO, the first of every pickle since protocol 2
        return head[1:2] in _PROTOCOLS
    text = head.lstrip()
    return text.startswith(b"{") and any(key in text for key in (b'"pg_config"', b'"profiling_name"', b'"pg_status"'))


def find_dumps(folder: Path) -> list[Path]:
    """Return the dumps in a folder, or if it has none those in its subfolders, such as one for each node.

    Raises:
        ReprosError: the folder cannot be read, or has no dump.
    """
    try:
        inside = sorted(folder.iterdir())
        files = [path for path in inside if path.is_file()]
        dumps = [path for path in files[:MOST_DUMPS] if is_dump(path)]
        if not dumps:
            folders = [path for path in inside if path.is_dir() and not path.is_symlink()]
            files += sorted(path for below in folders for path in below.iterdir() if path.is_file())
            dumps = [path for path in files[:MOST_DUMPS] if is_dump(path)]
    except OSError as error:
        raise ReprosError(f"{folder} cannot be read ({error.strerror}).") from error
    if not dumps:
        raise ReprosError(
            f"{folder} has no flight recorder dump among its {len(files)} files; expected one for each rank, named by "
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE (or TORCH_FR_DUMP_TEMP_FILE)."
        )
    return dumps


def read_dumps(paths: Iterable[Path]) -> tuple[Dump, ...]:
    """Return the dumps in the order of their ranks; one that is damaged has no calls and a `problem`.

    Raises:
        ReprosError: no file can be read, one has no rank in its name, or two files have the same rank.
    """
    dumps: dict[int, Dump] = {}
    problems: list[ReprosError] = []
    with _without_collector():
        for path in paths:
            rank = _rank_of(path)
            try:
                dump = read_dump(path)
            except ReprosError as error:
                from repros.diagnose.match.hang.calls import Dump  # noqa: PLC0415 - most calls are for a log alone

                problems.append(error)
                dump = Dump(rank, str(path), "", (), {}, {}, str(error))
            if (other := dumps.setdefault(dump.rank, dump)) is not dump:
                same = f"{other.file} and {path} both have rank {dump.rank}"
                raise ReprosError(f"{same}; pass the dumps of one hang, one for each rank.")
    if problems and len(problems) == len(dumps):
        raise problems[0]
    return tuple(dumps[rank] for rank in sorted(dumps))


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Stop Python's cyclic garbage collector, which looks through all values again and again while they are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_dump(path: Path) -> Dump:
    """Return one rank's dump; the number at the end of the file's name is the rank, as in PyTorch's names.

    Raises:
        ReprosError: the file cannot be read, is too large, damaged or refused, or has no rank in its name.
    """
    from repros.diagnose.match.hang.entries import parse_dump  # noqa: PLC0415 - most calls are for a log alone
    from repros.diagnose.match.hang.plain_pickle import read_plain  # noqa: PLC0415 - the same

    rank = _rank_of(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ReprosError(f"{path} has more than {MOST_BYTES // 2**20} MB; no flight recorder dump is that large.")
        raw = path.read_bytes()
    except OSError as error:
        raise ReprosError(f"{path} cannot be read ({error.strerror}).") from error
    content = read_plain(raw, str(path)) if raw[:1] == b"\x80" else _read_json(raw, path)
    return parse_dump(content, rank, str(path))


def _rank_of(path: Path) -> int:
    rank = re.search(_RANK, path.name, re.IGNORECASE)
    if not rank:
        raise ReprosError(
            f"{path} is a flight recorder dump, but its name does not end in a rank, as PyTorch's names do "
            "(nccl_trace_rank_0); rename it."
        )
    return int(rank[1])


def _read_json(raw: bytes, path: Path) -> object:
    import json  # noqa: PLC0415 - see `read_dump`

    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ReprosError(f"{path} is truncated or damaged JSON ({error}); expected a complete dump.") from error


def split_inputs(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the logs and the dumps among files and folders; `-` is a log, and the default without any path.

    Raises:
        ReprosError: one cannot be read, or a folder has no dump.
    """
    logs, dumps = [], []
    for path in paths:
        if path.is_dir():
            dumps += find_dumps(path)
        elif path != STDIN and path.is_file() and is_dump(path):
            dumps.append(path)
        else:
            logs.append(path)
    return logs or ([] if dumps else [STDIN]), dumps
