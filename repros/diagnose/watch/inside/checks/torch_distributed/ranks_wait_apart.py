"""The ranks of a program do not wait for one another at different places.

## What it does
Reports `ranks_wait_apart`, by where one of them waits, if every rank makes no progress in a collective or a backward
for 20 seconds, in calls of different names, and its process uses less than a twentieth of a processor. The process
outside compares.

## Why is this bad?
It is a deadlock. Nothing is raised before the process group's timeout of 30 minutes.

## Example
`if rank == 0: trainer.save_checkpoint(path)`: rank 0 waits in a barrier for ranks that train on.

## Known misses
Programs in which one rank computes, reads or writes, as one that saves a checkpoint while the others wait. Ranks in
calls of one name. Remote procedure calls. GPUs on which a host waits by spinning.

## Cost
A thread in each process with a process group, which reads the main thread's stack every five seconds. None if no check
of this family may report.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterator
from itertools import dropwhile
from types import FrameType
from typing import Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.compiling import is_ours
from repros.diagnose.watch.inside.observe.replicas import run_name
from repros.diagnose.watch.inside.wait_calls import waiting_call, waiting_check
from repros.diagnose.watch.inside.watch import Watch

CHECKS = (
    Check("ranks_wait_apart_saving", "a rank is in Lightning's `save_checkpoint`"),
    Check("ranks_wait_apart_logging", "a rank is in Lightning's `log` with `sync_dist`"),
    Check("ranks_wait_apart_epoch", "a rank reduces what Lightning has logged in an epoch"),
    Check(
        "ranks_wait_apart",
        "the ranks wait anywhere else",
        "let all ranks make the same collectives in the same order: none only under `if rank == 0`",
    ),
)

PERIOD, STILL = 5.0, 20.0
"""Seconds between two reads of the stack, and those without progress after which a process waits."""
_GOING_ON = ("collective", "replica", "before_backward", "after_backward", "before_step")
_IDLE = 0.05
"""The most processors that a waiting process uses."""


class _Waiting:
    """The thread that reads the main thread's stack."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._pid = 0
        self._key: list[Any] = []

    def begins(self, *_: object) -> None:
        """Start the thread with the first collective or replica of this process."""
        if self._pid == os.getpid() or not any(self._watch.is_enabled(check.name) for check in CHECKS):
            return
        import torch.distributed as dist

        if dist.is_initialized() and dist.get_world_size() > 1:
            self._pid = os.getpid()
            self._key = [run_name(), dist.get_world_size()]
            over = threading.Event()
            thread = threading.Thread(target=self._inspect, args=(over,), name="repros-watch", daemon=True)
            thread.start()
            atexit.register(_end, self._pid, thread, over)

    def _inspect(self, over: threading.Event) -> None:
        options = self._watch.options
        state: list[object] | None = None
        since = used = 0.0
        is_reported = False
        while not over.wait(PERIOD) and self._watch.options is options:
            now = [*map(self._watch.count, _GOING_ON), *_stack(_main_frame())]
            if now != state:
                if is_reported:
                    self._watch.events.write("moved", key=self._key)
                state, since, used, is_reported = now, time.monotonic(), time.process_time(), False
                continue
            seconds = time.monotonic() - since
            if not is_reported and seconds >= STILL and time.process_time() - used < _IDLE * seconds:
                is_reported = self._report(_main_frame())

    def _report(self, frame: FrameType | None) -> bool:
        call = waiting_call(dropwhile(lambda call: is_ours(call[0]), _calls(frame)))
        check = waiting_check({function for _, function in _calls(frame)})
        if call is None or not self._watch.is_enabled(check):
            return False
        facts = {"key": self._key, "world": self._key[1], "call": call, "place": user_location(frame)}
        self._watch.events.write("waiting", check=check, **facts)
        return True


def _end(pid: int, thread: threading.Thread, over: threading.Event) -> None:
    """End the thread of process `pid` before the interpreter ends; a forked child does not have it.

    The thread may hold the last reference to a tensor of the main thread's frames. If the interpreter's end stopped it
    while torch frees that tensor, inside C++ that cannot be unwound, the process would abort.
    """
    if os.getpid() == pid:
        over.set()
        thread.join()


def _main_frame() -> FrameType | None:
    """Return the main thread's innermost frame; a kept frame keeps everything that its functions refer to."""
    return sys._current_frames().get(threading.main_thread().ident or 0)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    checks = _Waiting(watch)
    for observation in ("collective", "replica"):
        watch.listen(observation, checks.begins)


def _stack(frame: FrameType | None) -> list[tuple[int, int]]:
    stack = []
    while frame is not None:
        stack.append((id(frame), frame.f_lasti))
        frame = frame.f_back
    return stack


def _calls(frame: FrameType | None) -> Iterator[tuple[str, str]]:
    """Yield the file and the function of each call, innermost first."""
    while frame is not None:
        yield frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name
        frame = frame.f_back
