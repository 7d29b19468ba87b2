"""The catalogue's CUDA cells that this machine's GPUs can show: `cells.jsonl`, in the format of a results file.

On simulated GPUs they are the cells for `sim`, so that no result can be taken for a GPU's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from repros.engine.catalogue import load
from repros.engine.environment import Targets
from repros.engine.pipeline import run_specs
from repros.engine.plan import Selection, select
from repros.engine.run_options import Observer, RunOptions
from repros.model import Device
from repros.simulated_gpus.tools.gpu import files

if TYPE_CHECKING:
    from repros.model import CellResult

NAME = "cells.jsonl"


def device_of_the_cells() -> Device:
    """Return the device whose cells are run: on simulated GPUs `sim`."""
    return Device.SIM if os.environ.get("REPROS_SIM") else Device.CUDA


def record(out: Path) -> Counter[str]:
    """Run the cells, append each result to the file, print those that disagree; return the number of each verdict."""
    device = device_of_the_cells()
    options = RunOptions(jobs=max(1, min(8, (os.cpu_count() or 1) // 2)), require=(device,))
    found: Counter[str] = Counter()
    out.joinpath(NAME).unlink(missing_ok=True)
    selection, where = Selection(devices=(device,)), Targets(python=Path(sys.executable))
    for result in run_specs(select(load(), selection), where, out / NAME, Observer(), options):
        found[result.verdict.value] += 1
        if result.verdict.disagrees:
            sys.stdout.write(_describe(result))
    return found


def _describe(result: CellResult) -> str:
    return f"{result.cell.label}: {result.verdict}: {result.reason}\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("REPROS_CACHE_DIR", cache)
        counts = record(files.out_option().out)
    sys.stdout.write(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + "\n")
