"""Ends a rank that has nothing left to do before Python ends: there Gloo may abort the process (pytorch#190489)."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys


def end_rank() -> None:
    distributed = sys.modules.get("torch.distributed")
    # An exception leaves `last_value`, but not in a spawned rank, whose exit code only its parent learns.
    is_spawned = multiprocessing.parent_process() is not None
    if distributed and distributed.is_initialized() and not is_spawned and not hasattr(sys, "last_value"):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


atexit.register(end_rank)
