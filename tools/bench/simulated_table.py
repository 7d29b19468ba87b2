"""Write what simulated GPUs cost into the accelerator's README: `python -m tools.bench.simulated_table`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repros.engine.digest.inputs import SIM
from repros.simulated_gpus.tools.page import fill_part
from tools.bench.kept import read_kept
from tools.docs.generator import run_generator


def table(kept: Mapping[str, Any]) -> str:
    """Return the rows, from the kept figures."""
    epochs = kept["epochs"]
    rows = [
        f"| an epoch of {epochs['batches']} batches, {network}"
        f" | {_times(epochs['networks_on_one_core'][network])} | {_times(timing)} |"
        for network, timing in epochs["networks"].items()
    ]
    seconds = epochs["import"]["seconds"]
    spread = f"{seconds['min']:+.2f} to {seconds['max']:+.2f}"
    rows.append(f"| `import torch` ({epochs['import']['torch']}) | | {seconds['median']:+.2f} s ({spread}) |")
    cores = epochs["machine"]["processors"]
    return f"| processor time | on one core | on {cores} cores |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _times(epoch: Mapping[str, Any]) -> str:
    ratio = epoch["processor"]["ratio"]
    return f"{ratio['median']:.2f} times the CPU's ({ratio['min']:.2f} to {ratio['max']:.2f})"


def fill(page: str) -> str:
    """Return the README with the part updated."""
    return fill_part(page, "cost", table(read_kept()))


if __name__ == "__main__":
    about = "Write what simulated GPUs cost into the accelerator's README."
    run_generator("tools.bench.simulated_table", about, SIM / "README.md", fill)
