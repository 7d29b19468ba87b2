"""How many outcomes of the table are CUDA's, word for word: counted, and kept in `agreement/`, one file for each torch.

`python -m repros.simulated_gpus.tools.placement.agreement --keep` evaluates the table on simulated GPUs, in an
environment whose torch has a record in `observed/`. `python -m repros.simulated_gpus.tools.placement.agreement --page
repros/simulated_gpus/README.md` updates the table on that page and needs no torch.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from repros.simulated_gpus.tools.json_rows import dumps_by_row
from repros.simulated_gpus.tools.page import fill_part
from repros.simulated_gpus.tools.simulated import simulated_environ

from .differences import explanation
from .recorded import FILES, covers, load, torch_version
from .table import LINES

FOLDER = Path(__file__).parent / "agreement"


def compare(recorded: dict[str, Any], simulated: dict[str, Any]) -> dict[str, Any]:
    """Return how many outcomes of a simulated device equal those of a record, and those that do not.

    Args:
        recorded: a record of CUDA's own code.
        simulated: the record of the same torch on simulated GPUs.
    """
    covered = [line.name for line in LINES if covers(recorded, line)]
    pairs = {name: {"cuda": recorded["observed"][name], "sim": simulated["observed"][name]} for name in covered}
    different = {name: pair for name, pair in pairs.items() if pair["cuda"] != pair["sim"]}
    return {
        "torch": simulated["torch"],
        "reference": f"{recorded['name']}, torch {recorded['torch']}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "lines": len(covered),
        "refused": sum("error" in pair["cuda"] for pair in pairs.values()),
        "same": len(covered) - len(different),
        "different": different,
    }


def record_simulated() -> dict[str, Any]:
    """Return the record of this environment's torch on simulated GPUs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        command = [sys.executable, "-W", "ignore", "-m", "repros.simulated_gpus.tools.placement", "--device", "cuda"]
        subprocess.run([*command, "--out", str(file)], env={**os.environ, **simulated_environ()}, check=True)
        return load(file)


def load_all() -> list[dict[str, Any]]:
    """Return the kept counts, the oldest torch first."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in FOLDER.glob("*.json")]
    return sorted(found, key=lambda made: [int(part) for part in release(made["torch"]).split(".")])


def release(version: str) -> str:
    """Return torch's version without its build: `2.13.0` of `2.13.0+cpu`."""
    return version.partition("+")[0]


def table() -> str:
    """Return the kept counts as a Markdown table."""
    lines = [
        "| torch | outcomes seen of CUDA's code | of these refused | the same on the simulated GPU | other words |"
    ]
    lines += ["|---|--:|--:|--:|---|"]
    for made in load_all():
        names = ", ".join(f"`{name}`" for name in made["different"])
        lines.append(f"| {release(made['torch'])} | {made['lines']} | {made['refused']} | {made['same']} | {names} |")
    return "\n".join(lines) + "\n"


def fill_page(text: str) -> str:
    """Return a page with the current table between its markers."""
    return fill_part(text, "placement", table())


def main() -> int:
    """Compare and print, or update a page; the exit code is 1 if an outcome differs without a known reason."""
    parser = argparse.ArgumentParser(
        prog="python -m repros.simulated_gpus.tools.placement.agreement", description=__doc__
    )
    parser.add_argument("--keep", action="store_true", help="keep the counts in the repository")
    parser.add_argument("--page", type=Path, help="write the table of the kept counts to this page, and run nothing")
    options = parser.parse_args()
    if options.page is not None:
        options.page.write_text(fill_page(options.page.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    torch = release(importlib.metadata.version("torch"))
    files = [file for file in FILES if release(load(file)["torch"]) == torch]
    if not files:
        parser.error(f"there is no record of torch {torch} in repros/simulated_gpus/tools/placement/observed")
    made = compare(load(files[0]), record_simulated())
    for name, pair in made["different"].items():
        print(f"{name}: {pair['sim']} instead of {pair['cuda']}")
    print(f"torch {made['torch']}: {made['same']} of {made['lines']} outcomes are those of {made['reference']}")
    if options.keep:
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"torch-{torch}.json").write_text(dumps_by_row(made), encoding="utf-8")
    of_torch = torch_version(made)
    return 1 if any(not explanation(name, of_torch) for name in made["different"]) else 0


if __name__ == "__main__":
    sys.exit(main())
