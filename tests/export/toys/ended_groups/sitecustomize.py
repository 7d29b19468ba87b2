"""Ends a script's process group before Python ends: then a thread of Gloo's may abort the process (pytorch#190489)."""

from __future__ import annotations

import atexit
import sys


def end_group() -> None:
    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_initialized():
        distributed.destroy_process_group()


atexit.register(end_group)
