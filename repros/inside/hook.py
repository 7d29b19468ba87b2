"""The hook: record what each process of a cell does, from inside that process.

Every process gets a folder `CELL/processes/PID/` with

- `events.jsonl`, one object per line, written with a single `write` so that a killed process leaves complete lines:
  `start` (role, rank), `joined` (rank and size of the process group), `raised` (the exception chain), `finished` (the
  script ran to its end), `interrupted` (SIGINT or SIGTERM has come), `exit` (`os._exit` was called), `reaped` (the wait
  status of a child), `stopped` (the leader is about to end this child); each with `time`, seconds of `time.monotonic`,
  which on Linux and macOS all processes of a machine share;
- `stacks.txt`, to which faulthandler writes every thread's stack at a fatal signal and when the engine requests it;
- `log.txt`, stdout and stderr of every process but the main one, whose log the engine opens itself.
"""

from __future__ import annotations

import os
import sys

from repros.inside import contract
from repros.inside.recorder import Recorder, launched_rank, redirect_output
from repros.inside.watchers import (
    watch_exceptions,
    watch_exits,
    watch_interrupts,
    watch_multiprocessing,
    watch_process_groups,
    watch_sigterm,
)
from repros.simulated_gpus.import_hooks import when_imported


def install(cell: str, role: str = "main") -> Recorder:
    """Start recording this process below the folder `cell`; return the recorder.

    `contract.LOG` and `contract.HOOKED` are read, and set for child processes.

    Args:
        cell: the cell folder.
        role: the role of the cell's first process; ignored in all others.
    """
    is_main = contract.HOOKED not in os.environ
    os.environ[contract.HOOKED] = "1"
    recorder = Recorder(cell)
    if is_main:
        recorder.begin(role, launched_rank())
    else:
        rank = launched_rank() if _is_script() else None
        recorder.begin("helper" if rank is None else "rank", rank)
        redirect_output(os.path.join(recorder.folder, "log.txt"))
    watch_exceptions(recorder)
    watch_exits(recorder)
    watch_interrupts(recorder)
    when_imported("multiprocessing.process", lambda module: watch_multiprocessing(recorder, module))
    for package in ("lightning.pytorch", "pytorch_lightning"):
        when_imported(f"{package}.utilities.exceptions", lambda module: watch_sigterm(recorder, module))
    when_imported("torch.distributed.distributed_c10d", lambda module: watch_process_groups(recorder, module))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: recorder.begin("helper", None))
    return recorder


def _is_script() -> bool:
    """Return whether this process runs the cell's script, as re-launched ranks do and a library's helpers do not."""
    argv = getattr(sys, "orig_argv", None) or _command_line()
    return os.environ.get(contract.SCRIPT) in map(os.path.realpath, argv[1:3])


def _command_line() -> list[str]:
    # Before Python 3.10, `sys` does not have the command line this early.
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")
    except OSError:
        return sys.argv
