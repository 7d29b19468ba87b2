"""The recording: each part in a process of its own, so that a part that ends or hangs costs no other part."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PARTS = ("about", "cells", "placement", "generators", "memory", "surface", "operators")
"""The parts, in the order in which they run: the cheapest and the most valuable first."""

_LEAST = 5.0
"""Seconds; a part is not started with less time left."""


def record(out: Path, minutes: float, parts: Sequence[str], operators: str = "") -> int:
    """Run the parts one after another and print how each ended.

    Returns 0, or 1 if a part is not complete, or 2 without a GPU.

    Args:
        out: the folder for the files.
        minutes: the time for all parts together.
        parts: names in `PARTS`.
        operators: texts, separated by commas; only operators whose name contains one of them.
    """
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes
    incomplete = False
    for part in (name for name in PARTS if name in parts):
        started = time.monotonic()
        how = _run(part, out, end, operators)
        sys.stdout.write(f"{part}: {how} after {time.monotonic() - started:.0f} s\n")
        sys.stdout.flush()
        incomplete |= how != "complete"
        if part == "about" and incomplete:
            return 2
    return int(incomplete)


def _run(part: str, out: Path, end: float, operators: str) -> str:
    """Run one part and return how it ended; its output goes to this process's."""
    left = end - time.monotonic()
    if left < _LEAST:
        return "not started, no time left"
    more = ["--operators", operators] if part == "operators" and operators else []
    # Of the parts only the cells need the engine.
    package = "tools.measure.gpu" if part == "cells" else "repros.simulated_gpus.tools.gpu"
    command = [sys.executable, "-m", f"{package}.{part}", "--out", str(out), *more]
    try:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=left, check=False).returncode
    except subprocess.TimeoutExpired:
        return "stopped, no time left"
    return "complete" if code == 0 else f"ended with exit code {code}"
