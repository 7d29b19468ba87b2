"""The catalogue's CUDA cells that this machine's GPUs can show: `cells.jsonl`, in the format of a results file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from repros.engine.catalogue import load
from repros.engine.environment import Where
from repros.engine.pipeline import Observer, RunOptions, run_selection
from repros.engine.plan import Selection
from repros.model import Device

from . import files

if TYPE_CHECKING:
    from repros.model import Result

NAME = "cells.jsonl"


def record(out: Path) -> Counter[str]:
    """Run the cells, append each result to the file, print those that disagree; return the number of each verdict."""
    options = RunOptions(jobs=max(1, min(4, (os.cpu_count() or 1) // 2)), require=(Device.CUDA,))
    found: Counter[str] = Counter()
    out.joinpath(NAME).unlink(missing_ok=True)
    selection, where = Selection(devices=(Device.CUDA,)), Where(python=Path(sys.executable))
    for result in run_selection(load(), selection, where, out / NAME, Observer(), options):
        found[result.verdict.value] += 1
        if result.verdict.disagrees:
            sys.stdout.write(_describe(result))
    return found


def _describe(result: Result) -> str:
    return f"{result.cell.label}: {result.verdict}: {result.reason}\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("REPROS_CACHE_DIR", cache)
        counts = record(files.out_option().out)
    sys.stdout.write(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + "\n")
