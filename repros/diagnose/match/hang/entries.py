"""Parse the plain values of a dump into calls, with one error message for values that PyTorch does not write."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from repros.diagnose.match.hang.calls import CollectiveCall, Dump, Membership, Progress, PythonFrame, State
from repros.model.errors import ReprosError

MOST_CALLS = 250_000
"""Of one dump. `TORCH_NCCL_TRACE_BUFFER_SIZE` has no limit; PyTorch's tutorial recommends 2,000."""
_MOST_VALUES = 10_000_000
"""Tensors and frames of all calls: a short pickle may name one list in each of its entries."""
_PEERS = re.compile(r"(\d+)(->|<-)(\d+|\?)$")
_MOST_FRAMES = 200
_MOST_TENSORS = 1_000
"""Of one call; a coalesced collective has one for each parameter."""
_MOST_DIMENSIONS = 64
_MOST_CACHED = 10_000


def parse_dump(content: Any, rank: int, file: str) -> Dump:
    """Return a dump from its plain values.

    Args:
        content: a dict with `entries`, or in the first versions the list of entries.
        rank: the rank in the file's name.
        file: the file's name in an error.

    Raises:
        ReprosError: a required value is missing or has another type.
    """
    if isinstance(content, list):
        content = {"version": "1", "entries": content}
    if not isinstance(content, Mapping) or not ({"entries", "pg_config", "pg_status"} & set(content)):
        raise ReprosError(f"{file} is no flight recorder dump: expected a dict with 'entries' and 'pg_config'.")
    entries = content.get("entries") or []
    if not isinstance(entries, list) or len(entries) > MOST_CALLS:
        raise ReprosError(f"{file} is no flight recorder dump: 'entries' is not a list, or is too long.")
    if len(set(map(id, entries))) < len(entries):  # PyTorch makes a dict for each
        raise ReprosError(f"{file} is no flight recorder dump: its pickle has one entry several times.")
    key = "pg_status"
    try:
        progress = {int(group): _progress(value) for group, value in (content.get("pg_status") or {}).items()}
        calls, values = [], 0
        for number, entry in enumerate(entries):
            key = f"entry {number}"
            call = _call(entry, progress)
            calls.append(call)
            values += len(call.inputs) + len(call.outputs) + len(call.frames)
            _refuse_many(values)
        key = "pg_config"
        groups = {str(name): _membership(value) for name, value in (content.get("pg_config") or {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        reason = f"without {error}" if isinstance(error, KeyError) else str(error)
        raise ReprosError(
            f"{file} is not a flight recorder dump of PyTorch: {key} is invalid ({reason[:120]})."
        ) from error
    ordered = tuple(sorted(calls, key=lambda call: call.record))
    return Dump(rank, file, str(content.get("version", "")), ordered, groups, progress)


def _refuse_many(values: int) -> None:
    if values > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES:,} tensors and frames up to there")


def _call(entry: Mapping[str, Any], progress: Mapping[int, Progress]) -> CollectiveCall:
    backend, operation, meta = _split_name(str(entry["profiling_name"]))
    names: Sequence[Any] = entry.get("process_group") or ()
    is_p2p = bool(entry.get("is_p2p", operation in ("send", "recv")))
    number = entry.get("p2p_seq_id") if is_p2p else entry.get("collective_seq_id")
    number = int(entry["seq_id"] if number is None else number)
    group_id = int(entry.get("pg_id", 0))
    return CollectiveCall(
        group=str(names[0] if names else entry["pg_id"]),
        description=_description(names[1]) if len(names) > 1 else "",
        group_id=group_id,
        record=int(entry.get("record_id", 0)),
        number=number,
        operation=operation,
        backend=backend,
        peers=_peers(meta) if is_p2p else None,
        inputs=_shapes(entry.get("input_sizes")),
        outputs=_shapes(entry.get("output_sizes")),
        types=tuple(map(str, (entry.get("input_dtypes") or entry.get("output_dtypes") or ())[:_MOST_TENSORS])),
        state=_state(entry, backend, number, None if is_p2p else progress.get(group_id)),
        created_ns=int(entry.get("time_created_ns") or 0),
        timeout_ms=int(entry.get("timeout_ms") or 0),
        frames=_frames(entry.get("frames")),
    )


@lru_cache(_MOST_CACHED)
def _split_name(name: str) -> tuple[str, str, str]:
    """Return backend, operation and peers of a `profiling_name`, such as `nccl:send 0->1`."""
    backend, _, call = name.rpartition(":")
    operation, _, meta = call.partition(" ")
    return backend, operation, meta


def _description(name: Any) -> str:
    text = str(name)
    return "" if text == "undefined" else text


def _state(entry: Mapping[str, Any], backend: str, number: int, progress: Progress | None) -> State:
    """Return the state of a call.

    Gloo has no events, so its calls stay `scheduled`; completed and failed calls are `retired`, and the number of a
    completed one is not above that of the group's last completed call. With NCCL, a retired call that is not completed
    has timed out.
    """
    state = str(entry["state"])
    if state == "completed":
        return State.FINISHED
    if backend == "gloo" and entry.get("retired") and (progress is None or number <= progress.completed):
        return State.FINISHED
    return State.STARTED if state == "started" else State.SCHEDULED


def _peers(meta: str) -> tuple[int | None, int] | None:
    """Return source and target of `0->1` or `1<-0`."""
    peers = _PEERS.match(meta)
    if not peers:
        return None
    own, arrow, other = peers.groups()
    if arrow == "->":
        return int(own), int(other)
    return (None if other == "?" else int(other)), int(own)


def _shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple([tuple(map(int, shape[:_MOST_DIMENSIONS])) for shape in value[:_MOST_TENSORS]]) if value else ()


def _frames(value: Any) -> tuple[PythonFrame, ...]:
    if not value:
        return ()
    return tuple([_frame(frame["filename"], frame["line"], frame["name"]) for frame in value[:_MOST_FRAMES]])


@lru_cache(_MOST_CACHED)
def _frame(file: Any, line: Any, function: Any) -> PythonFrame:
    """Return a frame; the calls of all ranks have the same few."""
    return PythonFrame(str(file), int(line), str(function))


def _progress(value: Mapping[str, Any]) -> Progress:
    return Progress(int(value["last_enqueued_collective"]), int(value["last_completed_collective"]))


def _membership(value: Any) -> Membership:
    """Return a group's description and ranks, which are a string such as `[0, 1]` from version 2.1 on."""
    description, ranks = ("", value) if isinstance(value, list | str) else (value.get("desc", ""), value["ranks"])
    if isinstance(ranks, str):
        ranks = re.findall(r"\d+", ranks)
    return Membership(_description(description), tuple(map(int, ranks)))
