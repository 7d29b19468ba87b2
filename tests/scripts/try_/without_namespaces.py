"""Runs a command where no namespace can be made, as in many containers: `python without_namespaces.py COMMAND...`.

A user namespace of its own allows no further one, and the command has no capabilities in it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from repros.scripts.try_.inside import kernel, namespaces  # noqa: E402 - of the checkout

if __name__ == "__main__":
    namespaces.enter(0)
    Path("/proc/sys/user/max_user_namespaces").write_text("0", "ascii")
    kernel.drop_capabilities()
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - executing the command is the purpose
