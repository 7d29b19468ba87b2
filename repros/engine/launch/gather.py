"""Gathering: turn the events that a job's processes recorded into the endings of an observation."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from repros.engine.launch import untrusted
from repros.engine.launch.stacks import read_from
from repros.model import Ending, Process, ProcessRole, Raised

_FATAL = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}
_FATAL_LINE = re.compile(rf"^Fatal Python error: ({'|'.join(_FATAL)})$", re.MULTILINE)
_INTERRUPTS = ("SIGINT", "SIGTERM")
_MOST_READ = 10_000_000
"""Bytes of a process's events that are read from the beginning of the file, and from its end."""
_MOST_OF_RUN = 20_000_000
"""Bytes of the events of all processes; as objects of Python they may take 24 times as many."""
_LONGEST_EVENT = 1_000_000
"""Bytes of a line; no event is as long."""
_MOST_PROCESSES = 4_000
_OF_SIGNALS = 128
"""Exit codes from here on are those of shells for signals."""
_LARGEST = 2**63
"""An integer in an event that is not smaller is damaged."""
_PID = re.compile(r"0|[1-9][0-9]{0,8}")

Events = list[Mapping[str, Any]]


@dataclass
class Timeline:
    """What the engine did to a job and when, in seconds of `time.monotonic`."""

    started: float
    main_ended: float | None = None
    deadline: float | None = None
    """When the job was declared hung."""
    cutoff: float = math.inf
    """When the engine began to end the remaining processes; it caused the events that they recorded later."""
    cutoffs: Mapping[int, float] = field(default_factory=dict)
    """When a leader began to end ranks that outlived a failed one, by their pids, if that was earlier."""
    stopped: set[int] = field(default_factory=set)
    """Pids of the processes that the engine ended."""
    frozen: set[int] = field(default_factory=set)
    """Pids of the processes that were stopped (SIGSTOP) at the deadline."""
    deadlock: str | None = None
    """The evidence of a deadlock before the deadline."""
    stacks_begin: Mapping[int, int] = field(default_factory=dict)
    """Bytes of each process's stacks that earlier requests brought; they are not evidence of the ending."""

    @property
    def last(self) -> float:
        """The last known moment, used for a process that did not record when it ended."""
        return self.deadline or self.main_ended or time.monotonic()


@dataclass(frozen=True)
class Gathered:
    """What a run has recorded."""

    processes: tuple[Process, ...]
    """Every process that recorded its start: the launcher, the ranks in order, then helpers."""
    damaged: tuple[str, ...]
    """What was skipped, and why: `processes/12/events.jsonl (2 lines that are no events)`."""


def gather(folder: Path, timeline: Timeline, main: int, main_status: int, *, is_trusted: bool = True) -> Gathered:
    """Return the processes of a run, and the records that were skipped.

    Args:
        folder: the folder of the run.
        timeline: what the engine did and when.
        main: the main process's pid.
        main_status: its `returncode`: negative for a signal.
        is_trusted: whether its processes record nothing but what happened to them.
    """
    damaged = list[str]()
    recorded = _recorded(folder, damaged.append)
    statuses = _child_statuses(event for events in recorded.values() for event in events)
    timeline.cutoffs = {
        event["child"]: event["time"]
        for events in recorded.values()
        for event in events
        if event["event"] == "stopped" and isinstance(event.get("child"), int)
    }
    timeline.stopped |= timeline.cutoffs.keys()
    processes = []
    for pid, events in recorded.items():
        trace = Trace.of(pid, events, is_main=pid == main)
        if trace is None:
            continue
        status = main_status if trace.pid == main else statuses.get(pid)
        if not is_trusted and status == -signal.SIGKILL and trace.pid not in timeline.stopped:
            # By a limit: it cannot know of that, whatever it has recorded of its end before.
            trace = replace(trace, interrupted=None, finished=None, exit=None)
        elif not _may_be_interrupted(trace, status, is_trusted=is_trusted):
            trace = replace(trace, interrupted=None)
        log = folder / "main.log" if trace.pid == main else folder / "processes" / str(pid) / "log.txt"
        text = read_from(folder, pid, timeline.stacks_begin.get(pid, 0))
        used = 0.0 if pid in statuses else trace.processor
        has_log = untrusted.is_file(folder, log)
        if not has_log and os.path.lexists(log):
            damaged.append(f"{log.relative_to(folder)} (no regular file)")
        processes.append(_process(trace, status, timeline, text, log if has_log else None, used))
    processes = _with_rank_zero(processes)
    return Gathered(tuple(sorted(processes, key=_sort_key)), tuple(damaged))


def _sort_key(process: Process) -> tuple[bool, int, int]:
    """Return a key that sorts the launcher first, then the ranks, then helpers."""
    return process.role is ProcessRole.HELPER, -1 if process.rank is None else process.rank, process.pid


def read_traces(folder: Path, main: int) -> dict[int, Trace]:
    """Return what each process of a running job has recorded so far, by its pid."""
    traces = (Trace.of(pid, events, is_main=pid == main) for pid, events in _recorded(folder).items())
    return {trace.pid: trace for trace in traces if trace}


def _recorded(folder: Path, report_damage: Callable[[str], None] = lambda _: None) -> dict[int, Events]:
    """Return the events of each process of a run, by its pid, the lowest pid first."""
    processes = folder / "processes"
    if os.path.lexists(processes) and not untrusted.is_folder(folder, processes):
        report_damage("processes (no folder)")
    names = untrusted.names(folder, processes)
    for name in names:
        if not _PID.fullmatch(name):
            report_damage(f"processes/{name!r} (no process)")
    pids = sorted(int(name) for name in names if _PID.fullmatch(name))
    if len(pids) > _MOST_PROCESSES:
        report_damage(f"processes ({len(pids) - _MOST_PROCESSES} processes of {len(pids)})")
    recorded, left = dict[int, Events](), _MOST_OF_RUN
    for pid in pids[:_MOST_PROCESSES]:
        head, end = _read_events(folder, pid, min(_MOST_READ, left), report_damage)
        left = max(0, left - len(head) - len(end))
        recorded[pid] = _events(head + end, f"processes/{pid}/events.jsonl", report_damage)
    return recorded


@dataclass(frozen=True)
class Trace:
    """The record of one process: its role, its rank and the last event of each kind that shows how it ended."""

    pid: int
    role: ProcessRole
    rank: int | None
    raised: Mapping[str, Any] | None
    finished: Mapping[str, Any] | None
    exit: Mapping[str, Any] | None
    joined: Mapping[str, Any] | None
    interrupted: Mapping[str, Any] | None
    """The first of its kind: later ones are its consequences."""
    processor: float
    """Processor time in seconds up to its last event, including the children that it waited for."""
    timeout: float | None = None
    """The shortest timeout of a process group, in seconds; None if the script set none."""

    @classmethod
    def of(cls, pid: int, events: Events, *, is_main: bool) -> Trace | None:
        """Sort the events; return None if the process recorded no start, unless the engine itself started it."""
        last = {event["event"]: event for event in events}
        interrupted = next(
            (event for event in events if event["event"] == "interrupted" and event.get("signal") in _INTERRUPTS), None
        )
        roles = [str(event.get("role")) for event in events if event["event"] == "start"]
        if not roles and not is_main:
            return None
        # The engine knows which process it started, even if its file is damaged; only the file names a leader.
        if is_main:
            role = ProcessRole.LEADER if roles[:1] == [ProcessRole.LEADER] else ProcessRole.MAIN
        else:
            role = ProcessRole.RANK if roles[-1] == ProcessRole.RANK else ProcessRole.HELPER
        # A process knows its rank for certain once it joined the process group: the last event with a rank counts.
        ranks = [event["rank"] for event in events if isinstance(event.get("rank"), int)]
        rank = ranks[-1] if ranks and role in {ProcessRole.MAIN, ProcessRole.RANK} else None
        used = [event["processor"] for event in events if isinstance(event.get("processor"), int | float)]
        timeouts = (event.get("timeout") for event in events if event["event"] in {"joined", "group"})
        ends = last.get("raised"), last.get("finished"), last.get("exit"), last.get("joined")
        return cls(
            pid,
            role,
            rank,
            *ends,
            interrupted,
            max(used, default=0.0),
            min((timeout for timeout in timeouts if isinstance(timeout, int | float)), default=None),
        )

    @property
    def world_size(self) -> int | None:
        """Size of the default process group that it joined; None if it joined none."""
        size = self.joined.get("world_size") if self.joined else None
        return size if isinstance(size, int) else None

    @property
    def is_rank(self) -> bool:
        """Whether it has joined a process group, as a launcher does not."""
        return self.world_size is not None


def _process(
    trace: Trace, status: int | None, timeline: Timeline, stacks: str, log: Path | None, processor: float
) -> Process:
    """Decide how one process ended, from its events, its wait status and what the engine did to it."""
    at, details = _ending(trace, status, timeline, stacks)
    return Process(
        trace.pid,
        trace.role,
        trace.rank,
        world_size=trace.world_size,
        at=max(0.0, (at or timeline.last) - timeline.started),
        stacks=stacks,
        log=log,
        processor=processor,
        **details,
    )


def _ending(trace: Trace, status: int | None, timeline: Timeline, stacks: str) -> tuple[float | None, dict[str, Any]]:
    """Return when a process ended, if it recorded that, and how."""
    cutoff = min(timeline.cutoff, timeline.cutoffs.get(trace.pid, math.inf))
    raised, finished, left, interrupted = (
        event if event and event["time"] <= cutoff else None
        for event in (trace.raised, trace.finished, trace.exit, trace.interrupted)
    )
    is_first = interrupted and all(interrupted["time"] < event["time"] for event in (raised, finished) if event)
    if interrupted and is_first:
        return interrupted["time"], {"ending": Ending.SIGNALLED, "signal": interrupted["signal"]}
    if raised is not None:
        return raised["time"], {"ending": Ending.RAISED, "chain": _chain(raised)}
    if finished is not None:
        if status is None and isinstance(finished.get("code"), int):
            # No parent waited for it, so the code that it passed to `sys.exit` is the only evidence.
            status = finished["code"]
        if status is None or status <= 0:
            return finished["time"], {"ending": Ending.RETURNED}
    if trace.pid in timeline.frozen:
        return None, {"ending": Ending.SIGNALLED, "signal": "SIGSTOP"}
    too_late = any(event and event["time"] > cutoff for event in (trace.raised, trace.finished, trace.exit))
    if trace.pid in timeline.stopped or too_late:
        return None, {"ending": Ending.TIMED_OUT if timeline.deadline else Ending.STOPPED}
    if left is not None:
        code = _code(left, status)
        return left["time"], {"ending": Ending.EXITED if code else Ending.RETURNED, "code": code}
    return None, _ending_without_event(status, stacks)


def _may_be_interrupted(trace: Trace, status: int | None, *, is_trusted: bool) -> bool:
    """Return whether a wait status allows the interruption that a process has recorded.

    A trusted process may have ended with 0, as a library does that takes an interruption for a wish to stop early, or
    with the SIGKILL of a launcher whose SIGTERM it outlived. From an untrusted one, these are the ends that it had, and
    the interruption is a claim.
    """
    if trace.interrupted is None or status is None:
        return True
    number = signal.Signals[trace.interrupted["signal"]]
    ends = {1, -number, _OF_SIGNALS + number}  # 1: from a launcher that saw it, or a library
    return status in ends or (is_trusted and not 1 < status < _OF_SIGNALS)


def _code(left: Mapping[str, Any], status: int | None) -> int | None:
    """Return the code of a call of `os._exit`; the exit status wins if the two disagree."""
    code = left.get("code")
    if status is not None and status >= 0 and not (isinstance(code, int) and code % 256 == status):
        return status
    return code if isinstance(code, int) else None


def _ending_without_event(status: int | None, stacks: str) -> dict[str, Any]:
    """Return how a process ended that did not record its ending."""
    if status is not None and status >= 0:
        # Zero too: the process left in the middle of the script, since it did not record its end.
        return {"ending": Ending.EXITED, "code": status}
    if status is not None:
        return {"ending": Ending.SIGNALLED, "signal": _signal_name(-status)}
    # No parent recorded a wait status, but faulthandler wrote down fatal signals.
    fatal = _FATAL_LINE.search(stacks)
    return {"ending": Ending.SIGNALLED, "signal": _FATAL[fatal[1]] if fatal else None}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names of their own
        return f"SIG{number}"


def _with_rank_zero(processes: list[Process]) -> list[Process]:
    """Give the main process rank 0 if it recorded no rank and no other process has rank 0."""
    if any(process.rank == 0 for process in processes):
        return processes
    return [replace(p, rank=0) if p.role is ProcessRole.MAIN and p.rank is None else p for p in processes]


def _child_statuses(events: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Return the exit codes of children that their parents reaped; negative for a signal."""
    statuses = {}
    for event in events:
        if event["event"] == "reaped":
            with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
                statuses[int(event["child"])] = os.waitstatus_to_exitcode(event["status"])
    return statuses


def _chain(event: Mapping[str, Any]) -> tuple[Raised, ...]:
    """Return the recorded exception chain; a damaged record gives an empty one."""
    try:
        return tuple(
            Raised(
                type=str(link["type"]),
                bases=tuple(map(str, link["bases"])),
                message=_printable(link["message"]),
                frames=tuple(map(str, link["frames"])),
                via=None if link["via"] is None else str(link["via"]),
            )
            for link in event["chain"]
        )
    except (KeyError, TypeError):
        return ()


def _printable(value: Any) -> str:
    """Return a value as text for any file and terminal: a lone surrogate (from undecodable bytes) becomes `?`."""
    return str(value).encode("utf-8", "replace").decode()


def _read_events(folder: Path, pid: int, most: int, report_damage: Callable[[str], None]) -> tuple[bytes, bytes]:
    """Return the beginning of a process's events, and their end, which says how it ended, however many there are."""
    file = folder / "processes" / str(pid) / "events.jsonl"
    try:
        head, end, left_out = untrusted.read_ends(folder, file, most)
    except FileNotFoundError:
        return b"", b""
    except OSError as error:
        report_damage(f"processes/{pid}/events.jsonl ({error.strerror})")
        return b"", b""
    if left_out:
        report_damage(f"processes/{pid}/events.jsonl ({left_out:,} bytes in its middle)")
    return head, (b"\n" if left_out else b"") + end


def _events(text: bytes, name: str, report_damage: Callable[[str], None]) -> Events:
    """Return the well-formed events of a text; skip lines that a killed or misbehaving process damaged."""
    events, damaged = Events(), 0
    for line in text.splitlines():
        try:
            event = _parse_event(line)
            if isinstance(event["event"], str) and isinstance(event["time"], float):
                events.append(event)
                continue
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        damaged += bool(line)
    if damaged:
        report_damage(f"{name} ({damaged} {'line that is no event' if damaged == 1 else 'lines that are no events'})")
    return events


def _parse_event(line: bytes) -> Any:
    """Parse a line of JSON.

    Raises:
        ValueError: it is no JSON, is too long, or has a number that no clock, status or pid is.
    """
    if len(line) > _LONGEST_EVENT:
        raise ValueError("too long")
    return json.loads(line, parse_constant=_finite, parse_float=_finite, parse_int=_whole)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _whole(text: str) -> int:
    number = int(text)
    if abs(number) >= _LARGEST:
        raise ValueError(text)
    return number
