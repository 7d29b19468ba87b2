"""Parse the plain values of a dump into calls, with one error message for values that PyTorch does not write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from repros.diagnose.match.hang.calls import CollectiveCall, Dump, Membership, Progress, PythonFrame, State
from repros.model.errors import ReprosError

MOST_CALLS = 1_000_000
_PEERS = re.compile(r"(\d+)(->|<-)(\d+|\?)$")
_MOST_FRAMES = 200
_MOST_TENSORS = 1_000
"""Of one call; a coalesced collective has one for each parameter."""


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
    key = "pg_status"
    try:
        progress = {int(group): _progress(value) for group, value in (content.get("pg_status") or {}).items()}
        calls = []
        for number, entry in enumerate(entries):
            key = f"entry {number}"
            calls.append(_call(entry, progress))
        key = "pg_config"
        groups = {str(name): _membership(value) for name, value in (content.get("pg_config") or {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        reason = f"without {error}" if isinstance(error, KeyError) else str(error)
        raise ReprosError(
            f"{file} is not a flight recorder dump of PyTorch: {key} is invalid ({reason[:120]})."
        ) from error
    ordered = tuple(sorted(calls, key=lambda call: call.record))
    return Dump(rank, file, str(content.get("version", "")), ordered, groups, progress)


def _group(entry: Mapping[str, Any]) -> str:
    names = entry.get("process_group")
    return str(names[0]) if names else str(entry["pg_id"])


def _description(entry: Mapping[str, Any]) -> str:
    names = list(entry.get("process_group") or ())
    text = str(names[1]) if len(names) > 1 else ""
    return "" if text == "undefined" else text


def _call(entry: Mapping[str, Any], progress: Mapping[int, Progress]) -> CollectiveCall:
    backend, _, name = str(entry["profiling_name"]).rpartition(":")
    operation, _, meta = name.partition(" ")
    is_p2p = bool(entry.get("is_p2p", operation in ("send", "recv")))
    number = entry.get("p2p_seq_id") if is_p2p else entry.get("collective_seq_id")
    number = int(entry["seq_id"] if number is None else number)
    group_id = int(entry.get("pg_id", 0))
    return CollectiveCall(
        group=_group(entry),
        description=_description(entry),
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
        frames=tuple(_frame(frame) for frame in (entry.get("frames") or ())[:_MOST_FRAMES]),
    )


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
    return tuple(tuple(map(int, shape[:_MOST_TENSORS])) for shape in (value or ())[:_MOST_TENSORS])


def _frame(value: Any) -> PythonFrame:
    return PythonFrame(str(value["filename"]), int(value["line"]), str(value["name"]))


def _progress(value: Mapping[str, Any]) -> Progress:
    return Progress(int(value["last_enqueued_collective"]), int(value["last_completed_collective"]))


def _membership(value: Any) -> Membership:
    """Return a group's description and ranks, which are a string such as `[0, 1]` from version 2.1 on."""
    description, ranks = ("", value) if isinstance(value, list | str) else (value.get("desc", ""), value["ranks"])
    if isinstance(ranks, str):
        ranks = re.findall(r"\d+", ranks)
    text = str(description)
    return Membership("" if text == "undefined" else text, tuple(map(int, ranks)))
