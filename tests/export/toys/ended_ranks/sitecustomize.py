"""Ends a rank that has nothing left to do before Python ends: there Gloo may abort the process (pytorch#190489)."""

from __future__ import annotations

import atexit
import os
import sys


def end_rank() -> None:
    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_initialized() and not hasattr(sys, "last_value"):  # no exception has ended it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


atexit.register(end_rank)
