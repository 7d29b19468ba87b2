"""The recorder of one process, which writes its events to `JOB/processes/PID/`."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import time
from typing import Any

from repros.inside import contract
from repros.inside.chain import exception_chain

STACKS_SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else signal.SIGUSR2
"""The signal that requests a dump of all stacks: a real-time signal, which no training library uses."""

RANK_GRACE = 15.0
"""Grace period, in seconds, for the other ranks to end after one has failed: they must first notice its death."""


class ProcessRecorder:
    """The open files of this process; a forked child, which has another pid, opens its own."""

    def __init__(self, job: str) -> None:
        self.job = job
        self.pid: int | None = None
        self.raised = False

    def begin(self, role: str, rank: int | None) -> None:
        """Open the files of this process and write its event `start`."""
        self.pid = os.getpid()
        self.raised = False
        folder = os.path.join(self.job, "processes", str(self.pid))
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self.events = os.open(os.path.join(folder, "events.jsonl"), flags, 0o600)
        self.stacks = open(os.path.join(folder, "stacks.txt"), "a")  # noqa: SIM115 - open as long as the process lives
        faulthandler.enable(self.stacks, all_threads=True)
        faulthandler.register(STACKS_SIGNAL, self.stacks, all_threads=True, chain=False)
        self.write("start", ppid=os.getppid(), role=role, rank=rank)

    def write(self, event: str, **details: Any) -> None:
        """Append one event, with the CPU seconds of this process and of the children that it has waited for.

        Errors are ignored, since recording must not make a script fail.
        """
        try:
            if os.getpid() != self.pid:
                self.begin("helper", None)
            # The leading line break separates it from an incomplete line of another writer.
            used = round(sum(os.times()[:4]), 2)
            line = f"\n{json.dumps(dict(details, event=event, time=time.monotonic(), processor=used))}\n"
            os.write(self.events, line.encode("utf-8", "backslashreplace"))
        except Exception:
            pass

    def exception(self, error: BaseException, where: str) -> None:
        """Write the event `raised`: the chain of an exception that ends this process."""
        self.raised = True
        try:
            chain = exception_chain(error)
        except Exception:  # a hostile exception is recorded without its chain
            chain = []
        self.write("raised", where=where, rank=current_rank(), chain=chain)


def launched_rank() -> int | None:
    """Return the rank in this process's environment variables, as a launcher sets it, or None."""
    for name in ("RANK", "LOCAL_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def current_rank() -> int | None:
    """Return the rank in the default process group, or, without one, the launched rank."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        return distributed.get_rank() if distributed.is_initialized() else launched_rank()
    except Exception:
        return launched_rank()


def redirect_output(path: str) -> None:
    """Redirect stdout and stderr from the shared log to this process's own log; leave other streams alone."""
    inherited = os.environ.get(contract.LOG)
    if inherited is None:
        return
    try:
        shared = os.stat(inherited)
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:  # the shared log was deleted or the disk is full: keep the inherited streams
        return
    for stream in (1, 2):
        with contextlib.suppress(OSError):  # closed
            if os.path.samestat(os.fstat(stream), shared):
                os.dup2(log, stream)
    os.close(log)
    os.environ[contract.LOG] = path
