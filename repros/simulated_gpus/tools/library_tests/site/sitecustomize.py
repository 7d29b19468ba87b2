"""Start-up code of every Python process of a library's tests: pytest's process and those that the tests start.

The project's own `sitecustomize` comes first on the path and runs this one. A process that used a simulated device
records that when it ends, in the file named by `SIM_LIBRARY_RANKS`.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import NoReturn

_inherited = [0]
"""The number of blocks that a forked process's parent had allocated."""


def _count_blocks() -> int:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if not cuda or not cuda.is_initialized():  # asking for memory would initialise CUDA
        return 0
    return sum(cuda.memory_stats(index).get("allocation.all.allocated", 0) for index in range(cuda.device_count()))


def _record_use() -> None:
    if _count_blocks() > _inherited[0]:
        with Path(os.environ["SIM_LIBRARY_RANKS"]).open("a") as file:
            file.write(f"{os.getpid()}\n")


def _count_inherited() -> None:
    _inherited[0] = _count_blocks()


if "SIM_LIBRARY_RANKS" in os.environ:
    _exit = os._exit

    def _record_and_exit(status: int) -> NoReturn:
        _record_use()
        _exit(status)

    atexit.register(_record_use)
    # Forked children of multiprocessing end by `os._exit`, which runs no exit handlers.
    os._exit = _record_and_exit
    os.register_at_fork(after_in_child=_count_inherited)
