"""Every operator of PyTorch's database on the GPU: types, strides and devices of all results, values against the CPU.

The results go to `operators.jsonl.gz` one combination a line, after each part of the operators.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from repros.simulated_gpus.tools.conformance import run

from . import files

NAME = "operators.jsonl.gz"
_PARTS = 5
"""Parts of the operators: a recording that is stopped keeps the parts before."""


def record(out: Path, texts: str) -> int:
    """Run the operators whose name contains one of the texts and write each part's results; return their number."""
    version, names = run.torch_version_and_operators()
    chosen = [index for index, name in enumerate(names) if any(text in name for text in texts.split(","))]
    jobs = max(1, min(12, (os.cpu_count() or 1) - 1))
    size = -(-len(chosen) // _PARTS) or 1
    path, done, started = out / NAME, 0, time.monotonic()
    path.unlink(missing_ok=True)
    for first in range(0, len(chosen), size):
        found = run.run_operators(chosen[first : first + size], jobs, lambda part: None, run.LAYOUTS, {})
        text = "".join(json.dumps({"torch": version, **combination._asdict()}) + "\n" for combination in found)
        with path.open("ab") as file:
            file.write(gzip.compress(text.encode()))
        done += len(found)
        seconds = time.monotonic() - started
        sys.stdout.write(f"{min(first + size, len(chosen))} of {len(chosen)} operators after {seconds:.0f} s\n")
        sys.stdout.flush()
    return done


def read(path: Path) -> list[dict[str, Any]]:
    """Return the combinations of a record; the last part of a stopped recording may be torn."""
    found: list[dict[str, Any]] = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found += map(json.loads, file)
    except (EOFError, ValueError, OSError):
        pass
    return found


if __name__ == "__main__":
    options = files.out_option(operators="")
    record(options.out, options.operators)
