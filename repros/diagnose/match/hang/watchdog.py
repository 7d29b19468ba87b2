"""Parse the lines that ProcessGroupNCCL's watchdog writes into a log when a collective times out.

The wordings are those of `ProcessGroupNCCL.cpp` and `TraceUtils.h` from torch 1.13 to 2.15:

* `[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE, ...) ran for ...`, with
  `TensorShape` until 2.0 and `NumelIn` and `NumelOut` from 2.1 on;
* from 2.3 on the numbers of the last works, `last enqueued NCCL work: 7, last completed NCCL work: 4`, also of ranks
  without a timeout; from 2.6 on `PG status: last enqueued work: 7, last completed work: 4`;
* from 2.6 on the stack that called the collective, if the flight recorder is on: `#0 all_reduce from FILE:LINE`;
* with `TORCH_NCCL_DESYNC_DEBUG` (before 2.2 `NCCL_DESYNC_DEBUG`) which ranks joined which collective.

The rank in brackets before the message is the rank within the group; the global rank is in torch's prefix `[rank13]:`,
from 2.2 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from repros.diagnose.match.hang.calls import PythonFrame, user_frame
from repros.diagnose.match.hang.marks import MARKS, STATUS_TEXTS, TIMEOUT_TEXT

MOST_REPORTS = 100_000
_MOST_FRAMES = 200
_MOST_WRAPPED = 4
"""Lines of one message if a terminal or a web page has wrapped it."""
_GLOBAL = re.compile(r"\[rank:? ?(\d+)\]:?")
_RECORD = re.compile(r"ProcessGroupNCCL\.cpp:\d+\]")
_PREFIX = r"\[(?:PG (?:ID (?P<id>\S+) PG GUID )?(?P<pg>[^\s(\]]+) ?(?:\((?P<desc>[^)\]]*)\))? ?)?Rank (?P<rank>\d+)\]"
_TIMEOUT = re.compile(
    _PREFIX + r" ?Watchdog caught collective operation timeout: WorkNCCL\((?P<work>.*?)\) ran for (?P<ms>\d+)"
)
_FIELD = re.compile(r"(SeqNum|OpType|TensorShape|NumelIn|NumelOut|Timeout\(ms\)) ?= ?(\[[^\]]*\]|[^,\s)]+)")
_STATUS = re.compile(
    _PREFIX + r".*?[Ll]ast ?enqueued ?(?:NCCL ?)?work: ?(?P<enqueued>-?\d+), ?"
    r"last ?completed ?(?:NCCL ?)?work: ?(?P<completed>-?\d+)"
)
_STATUS_END = re.compile(r"last ?completed ?(?:NCCL ?)?work: ?-?\d")
_AT_WORK = re.compile(r"(?:watchdog ?at work(?: sequence id)?|Timeout at NCCL work): ?(\d+)")
_FRAME = re.compile(r"#\d+ (\S.*?) from (\S.*?):(\d+)\s*$")
_NEVER = re.compile(r"ranks \[([\d, ]*)\] are the lagging ranks")
_JOINED_ONLY = re.compile(r"\[([\d, ]*)\] joined but didn't finish collective #(\d+)")
_STARTED = re.compile(r"^\s*\[([\d, ]+)\] started (\w+)\s*$")
_FINISHED = re.compile(r"\[([\d, ]*)\] finished collective #(\d+), but didn't join collective #(\d+)")


_NO_SIZE = "18446744073709551615"
"""2 ** 64 - 1: torch's size of a group of calls."""


@dataclass
class WatchdogReport:
    """The watchdog's lines from one process about one group."""

    rank: int
    """The global rank, or the rank within the group if the log lacks the global one."""
    is_global: bool
    line: int
    """The first of these lines."""
    group: str = ""
    """Name of the group; empty if the log lacks it."""
    description: str = ""
    timed_out: dict[int, str] = field(default_factory=dict)
    """The collectives that timed out, by number: `ALLREDUCE of 1 element`."""
    ran_ms: int = 0
    enqueued: int | None = None
    completed: int | None = None
    frames: list[PythonFrame] = field(default_factory=list)
    """The stack that called the collective, innermost first."""

    @property
    def location(self) -> PythonFrame | None:
        """The innermost frame outside of libraries, if the log has the stack."""
        return user_frame(self.frames)


@dataclass
class Desync:
    """Torch's own comparison of the ranks (desync debug)."""

    line: int
    never: tuple[int, ...] = ()
    """Ranks that never joined any collective."""
    joined: tuple[int, ...] = ()
    """Ranks that joined the collective with the smallest number, and did not finish it."""
    started: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The ranks in a collective, by its operation."""
    behind: tuple[int, ...] = ()
    """Ranks that finished a collective, and did not join the next."""
    number: int = 0
    """The collective that the ranks did not join, or did not finish."""


@dataclass(frozen=True)
class WatchdogLines:
    """All lines of the watchdog in a log."""

    reports: tuple[WatchdogReport, ...] = ()
    desyncs: tuple[Desync, ...] = ()


def read_watchdog(lines: Iterable[tuple[int, str]]) -> WatchdogLines:
    """Return the reports of a log, in its order.

    Args:
        lines: number and text of each line.
    """
    reader = _Reader()
    for number, text in _unwrapped(lines):
        reader.read_line(number, text)
    reports = tuple(reader.reports.values())
    if any(report.is_global for report in reports):  # then lines without a prefix repeat others, in a `what():`
        reports = tuple(report for report in reports if report.is_global)
    return WatchdogLines(reports, tuple(reader.desyncs.values()))


def _unwrapped(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines that may be the watchdog's; a wrapped line is joined with the following ones."""
    waiting: tuple[int, str] | None = None
    parts = 0
    for number, text in lines:
        if waiting is not None and not _begins_record(text):
            waiting, parts = (waiting[0], waiting[1] + text.strip()), parts + 1
            if not (_is_complete(waiting[1]) or parts >= _MOST_WRAPPED):
                continue
            yield waiting
            waiting = None
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        if any(pattern in text for pattern in MARKS):
            if _is_complete(text):
                yield number, text
            else:
                waiting, parts = (number, text.rstrip()), 1
    if waiting is not None:
        yield waiting


def _begins_record(text: str) -> bool:
    return bool(_GLOBAL.search(text) or _RECORD.search(text))


def _is_complete(text: str) -> bool:
    if TIMEOUT_TEXT in text:
        return " ran for" in text
    return not any(part in text for part in STATUS_TEXTS) or bool(_STATUS_END.search(text))


class _Reader:
    """Collects the lines of each process about each group."""

    def __init__(self) -> None:
        self.reports: dict[tuple[int, bool, str], WatchdogReport] = {}
        self.desyncs: dict[tuple[tuple[int, ...], ...], Desync] = {}
        self._newest: WatchdogReport | None = None

    def read_line(self, number: int, text: str) -> None:
        prefix = _GLOBAL.search(text)
        if timeout := _TIMEOUT.search(text):
            self._read_timeout(number, prefix, timeout)
        elif status := _STATUS.search(text):
            self._read_status(number, prefix, status, _AT_WORK.search(text))
        elif (frame := _FRAME.search(text)) and self._newest and len(self._newest.frames) < _MOST_FRAMES:
            self._newest.frames.append(PythonFrame(frame[2], int(frame[3]), frame[1]))
        self._read_desync(number, text)

    def _read_timeout(self, number: int, prefix: re.Match[str] | None, timeout: re.Match[str]) -> None:
        fields = dict(_FIELD.findall(timeout["work"]))
        at, operation = int(fields.get("SeqNum", 0)), _operation(fields)
        rank, is_global = _process(prefix, timeout)
        known = (report for key, report in self.reports.items() if key[:2] == (rank, is_global))
        repeated = next((report for report in known if report.timed_out.get(at) == operation), None)
        self._newest = repeated or self._report(number, (rank, is_global), timeout)
        self._newest.timed_out[at] = operation
        self._newest.ran_ms = int(timeout["ms"])

    def _read_status(
        self, number: int, prefix: re.Match[str] | None, status: re.Match[str], at_work: re.Match[str] | None
    ) -> None:
        process = _process(prefix, status)
        report = self._newest = self._report(number, process, status)
        report.enqueued, report.completed = int(status["enqueued"]), int(status["completed"])
        if not at_work:
            return
        at = int(at_work[1])
        unnamed = self.reports.get((*process, ""))
        if (
            unnamed and unnamed is not report and at in unnamed.timed_out
        ):  # this line names the group of the earlier one
            report.timed_out[at], report.line = unnamed.timed_out.pop(at), min(report.line, unnamed.line)
            if not unnamed.timed_out:
                del self.reports[*process, ""]
        report.timed_out.setdefault(at, "")

    def _report(self, number: int, process: tuple[int, bool], line: re.Match[str]) -> WatchdogReport:
        group = line["pg"] or ""
        key = (*process, group)
        if key not in self.reports and len(self.reports) >= MOST_REPORTS:
            return WatchdogReport(*process, number, group)
        report = self.reports.setdefault(key, WatchdogReport(*process, number, group))
        report.description = line["desc"] or report.description
        return report

    def _read_desync(self, number: int, text: str) -> None:
        if (line := _STARTED.search(text)) and self.desyncs:
            started = next(reversed(self.desyncs.values())).started
            started[line[2]] = tuple(sorted({*started.get(line[2], ()), *_ranks(line[1])}))
            return
        never, joined, finished = _NEVER.search(text), _JOINED_ONLY.search(text), _FINISHED.search(text)
        if never:
            desync = Desync(number, never=_ranks(never[1]))
        elif finished:
            desync = Desync(number, behind=_ranks(finished[1]), number=int(finished[3]))
        elif joined:
            desync = Desync(number, joined=_ranks(joined[1]), number=int(joined[2]))
        else:
            return
        self.desyncs.setdefault((desync.never, desync.joined, desync.behind), desync)


def _process(prefix: re.Match[str] | None, line: re.Match[str]) -> tuple[int, bool]:
    """Return the rank of a line, and whether it is the global rank."""
    return (int(prefix[1]), True) if prefix else (int(line["rank"]), False)


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _operation(fields: dict[str, str]) -> str:
    """Return `ALLREDUCE of 1 element`, or of torch before 2.1 `ALLREDUCE of shape [4, 4]`."""
    name = fields.get("OpType", "")
    if shape := fields.get("TensorShape"):
        return f"{name} of shape {shape}"
    sizes = [fields[key] for key in ("NumelIn", "NumelOut") if fields.get(key, _NO_SIZE) != _NO_SIZE]
    if not sizes:
        return name
    if len(set(sizes)) == 1:
        return f"{name} of {sizes[0]} element{'' if sizes[0] == '1' else 's'}"
    return f"{name} of {sizes[0]} elements to {sizes[1]}"
