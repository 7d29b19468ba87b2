"""The hook that records the events of each process of a job, from within the process.

Each process writes to a folder `JOB/processes/PID/`:

- `events.jsonl`, one object per line, each written by a single `write` call, so a killed process leaves complete lines:
  `start` (role, rank), `joined` (rank and size of the process group), `raised` (the exception chain), `finished` (the
  script ran to completion), `interrupted` (SIGINT or SIGTERM arrived), `exit` (a call of `os._exit`), `reaped` (the
  wait status of a child), `stopped` (the leader is about to kill this child); each with `time`, seconds of
  `time.monotonic`, a clock that on Linux and macOS all processes of a machine share;
- `stacks.txt`, the stacks of all threads, dumped by faulthandler at a fatal signal or on request of the engine;
- `log.txt`, stdout and stderr; the engine itself opens the log of the main process.
"""

from __future__ import annotations

import os
import sys

from repros.inside import contract
from repros.inside.imports import collect_after_imports
from repros.inside.instrumentation import (
    record_exceptions,
    record_exits,
    record_interrupts,
    record_multiprocessing,
    record_process_groups,
    record_sigterm,
)
from repros.inside.recorder import ProcessRecorder, launched_rank, redirect_output
from repros.simulated_gpus.import_hooks import when_imported


def install(folder: str, role: str = "main") -> ProcessRecorder:
    """Start recording the events of this process, and return the recorder.

    Reads `contract.LOG` and `contract.HOOKED`, and sets them for child processes.

    Args:
        folder: the job's folder.
        role: the role of the job's first process; ignored in all others.
    """
    is_main = contract.HOOKED not in os.environ
    os.environ[contract.HOOKED] = "1"
    recorder = ProcessRecorder(folder)
    if is_main:
        recorder.begin(role, launched_rank())
    else:
        rank = launched_rank() if _is_script() else None
        recorder.begin("helper" if rank is None else "rank", rank)
        redirect_output(os.path.join(recorder.folder, "log.txt"))
    record_exceptions(recorder)
    record_exits(recorder)
    record_interrupts(recorder)
    collect_after_imports()
    when_imported("multiprocessing.process", lambda module: record_multiprocessing(recorder, module))
    for package in ("lightning.pytorch", "pytorch_lightning"):
        when_imported(f"{package}.utilities.exceptions", lambda module: record_sigterm(recorder, module))
    when_imported("torch.distributed.distributed_c10d", lambda module: record_process_groups(recorder, module))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: recorder.begin("helper", None))
    return recorder


def _is_script() -> bool:
    """Return whether this process runs the job's script: true of re-launched ranks, false of a library's helpers."""
    argv = getattr(sys, "orig_argv", None) or _command_line()
    return os.environ.get(contract.SCRIPT) in map(os.path.realpath, argv[1:3])


def _command_line() -> list[str]:
    # Before Python 3.10, `sys` lacks the command line this early in start-up.
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")
    except OSError:
        return sys.argv
