"""Dumps made in a test in the form of PyTorch, `torch/csrc/distributed/c10d/FlightRecorder.hpp`, version 2.10."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from repros.diagnose.match.hang.calls import Dump
from repros.diagnose.match.hang.entries import parse_dump

STEP = {"name": "step", "filename": "/home/user/train.py", "line": 31}
STACK = [
    {
        "name": "all_reduce",
        "filename": "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
        "line": 9,
    },
    {"name": "wrapper", "filename": "/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", "line": 83},
    STEP,
    {"name": "<module>", "filename": "/home/user/train.py", "line": 50},
]
WORLD = ("0", "default_pg")


def entry(number: int, operation: str = "all_reduce", *, state: str = "completed", **values: Any) -> dict[str, Any]:
    """Return one entry, of the default group unless `process_group` says another."""
    name = operation.partition(" ")[0]
    is_p2p = name in ("send", "recv")
    made: dict[str, Any] = {
        "record_id": number - 1,
        "pg_id": 0,
        "process_group": WORLD,
        "thread_name": "python",
        "thread_id": "1",
        "collective_seq_id": 0 if is_p2p else number,
        "p2p_seq_id": number if is_p2p else 0,
        "op_id": number,
        "profiling_name": f"nccl:{operation}",
        "time_created_ns": 1_700_000_000_000_000_000 + number * 1_000_000,
        "input_sizes": [[4, 2]],
        "input_dtypes": ["Float"],
        "output_sizes": [[4, 2]],
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": is_p2p,
    }
    return {**made, **values}


def content(
    entries: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Iterable[int]],
    status: Mapping[int, tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """Return a dump's value.

    Args:
        entries: the calls; the first record keeps its number, the others follow it.
        groups: the ranks of each group by its name.
        status: the last enqueued and completed number by the group's number in the process.
    """
    first = entries[0]["record_id"] if entries else 0
    return {
        "version": "2.10",
        "pg_config": {
            name: {"name": name, "desc": "default_pg" if name == "0" else "", "ranks": str(list(ranks))}
            for name, ranks in groups.items()
        },
        "pg_status": {
            str(id_): {
                "last_enqueued_collective": enqueued,
                "last_started_collective": -1,
                "last_completed_collective": completed,
            }
            for id_, (enqueued, completed) in (status or {}).items()
        },
        "entries": [{**entry, "record_id": first + at} for at, entry in enumerate(entries)],
    }


def dumps_of(ranks: Mapping[int, Mapping[str, Any]]) -> tuple[Dump, ...]:
    """Return the dumps of these contents."""
    return tuple(parse_dump(value, rank, f"dump_{rank}") for rank, value in ranks.items())


def write(folder: Path, ranks: Mapping[int, Mapping[str, Any]], *, as_json: bool = False) -> Path:
    """Write each rank's dump into a folder, named as PyTorch names them."""
    folder.mkdir(exist_ok=True)
    for rank, value in ranks.items():
        raw = json.dumps(value).encode() if as_json else pickle.dumps(value, protocol=2)
        (folder / f"nccl_trace_rank_{rank}").write_bytes(raw)
    return folder
