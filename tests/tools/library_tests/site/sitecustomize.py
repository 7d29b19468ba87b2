"""Start-up code of every Python process of a library's tests: pytest's process and those that the tests start.

The project's own `sitecustomize` comes first on the path and runs this one. A process that used a simulated device
records that when it ends, in the file named by `SIM_LIBRARY_RANKS`.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path


def _record_use() -> None:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda and any(cuda.memory_stats(index).get("allocation.all.allocated") for index in range(cuda.device_count())):
        with Path(os.environ["SIM_LIBRARY_RANKS"]).open("a") as file:
            file.write(f"{os.getpid()}\n")


if "SIM_LIBRARY_RANKS" in os.environ:
    atexit.register(_record_use)
