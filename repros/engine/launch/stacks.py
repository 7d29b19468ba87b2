"""Stack traces of running Python processes: requested by a signal, written by faulthandler, parsed into frames."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from repros.engine.launch import containment, untrusted
from repros.inside.recorder import STACKS_SIGNAL

_TIMEOUT, _BUSY_TIMEOUT = 1.0, 15.0
"""Seconds to wait for the stacks of processes that sleep, and of those that wait for a processor."""
_POLL = 0.05
_STILL = 4
"""Polls in a row without a further line, after which the stacks of a process that runs are complete."""
_MOST_READ = 1_000_000
"""Bytes of a process's stacks."""
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+|\?+) in (?P<function>.*)$')


@dataclass(frozen=True)
class StackFrame:
    """One call on a stack."""

    file: str
    line: str
    function: str

    def is_in(self, file: str) -> bool:
        """Return whether the file's path ends with these folders and this name."""
        return self.file == file or self.file.endswith(f"/{file}")


StackTrace = tuple[StackFrame, ...]
"""The calls of one thread, innermost first."""


@dataclass(frozen=True)
class StackDump:
    """The stacks that processes have written upon one request."""

    begins: Mapping[int, int]
    """Bytes of each process's file before this request."""
    texts: Mapping[int, str]
    """What each process has written since, unparsed."""


def stacks_file(folder: Path, pid: int) -> Path:
    """Return the file in a cell's folder to which faulthandler writes the stacks of a process."""
    return folder / "processes" / str(pid) / "stacks.txt"


def take(folder: Path, targets: Mapping[int, psutil.Process]) -> StackDump:
    """Dump the stacks of processes that recorded their start, by their pids there; wait until they are written.

    A stopped process writes none, nor does one that has not enabled faulthandler yet.
    """
    begins = {pid: untrusted.size(folder, stacks_file(folder, pid)) for pid in targets}
    containment.signal_all(targets.values(), STACKS_SIGNAL)
    begun, sizes, still = time.monotonic(), dict(begins), dict.fromkeys(targets, 0)
    while pending := [pid for pid in targets if not _is_written(sizes[pid] - begins[pid], still[pid], targets[pid])]:
        waited = time.monotonic() - begun
        # On a busy machine a process may wait for a processor for seconds; then it is runnable.
        if waited >= _BUSY_TIMEOUT or (waited >= _TIMEOUT and not any(_is_runnable(targets[pid]) for pid in pending)):
            break
        time.sleep(_POLL)
        before, sizes = sizes, {pid: untrusted.size(folder, stacks_file(folder, pid)) for pid in targets}
        still = {pid: still[pid] + 1 if sizes[pid] == before[pid] else 0 for pid in targets}
    written = {pid: read_from(folder, pid, begins[pid]) for pid in targets}
    return StackDump(begins, {pid: text for pid, text in written.items() if text})


def _is_written(size: int, still: int, process: psutil.Process) -> bool:
    """Return whether stacks of this size are complete: not grown for a poll, or for some if their process runs."""
    return size > 0 and still >= (_STILL if _is_runnable(process) else 1)


def _is_runnable(process: psutil.Process) -> bool:
    """Return whether a process runs, or waits for a processor or for a disk."""
    with contextlib.suppress(psutil.Error):
        return process.status() in {psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP}
    return False


def threads(text: str) -> list[StackTrace]:
    """Return the stack of each thread in what faulthandler has written; the last one is the main thread's.

    faulthandler walks the interpreter's list of threads, which begins with the newest (`_Py_DumpTracebackThreads`, in
    Python's `traceback.c`).
    """
    traces: list[list[StackFrame]] = []
    for line in text.splitlines():
        if _THREAD.match(line):
            traces.append([])
        elif traces and (frame := _FRAME.match(line)):
            traces[-1].append(StackFrame(frame["file"], frame["line"], frame["function"]))
    return [tuple(frames) for frames in traces]


def read_from(folder: Path, pid: int, begin: int) -> str:
    """Return a process's stacks from that byte on, with undecodable bytes replaced; empty if there are none."""
    with contextlib.suppress(OSError):
        return untrusted.read(folder, stacks_file(folder, pid), _MOST_READ, begin).decode("utf-8", "replace")
    return ""
