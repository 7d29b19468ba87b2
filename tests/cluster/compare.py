"""Compare, cell by cell, what `repros matrix` finds on this machine and on a local Ray cluster of two nodes.

    python -m tests.cluster.compare [--stack NAME]... [--out FILE] [ID ...]

Both measure the same cells anew, with the environments of this machine, into folders that are thrown away. Cells that
could not be judged, as where another program took their port, are measured again by the same command, once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from repros.engine import record
from tests.cluster.driver import ROOT
from tests.cluster.kept import keep
from tests.cluster.local import local_cluster

STACKS = ("2026-07", "2023-12")
Key = tuple[str, ...]
"""Repro, variant, strategy, device and stack."""
Facts = dict[Key, tuple[object, ...]]
"""What is recorded of each cell, its verdict first."""


def facts(file: Path) -> Facts:
    """Return what is recorded of each cell but times, folders and processes' order; its verdict first."""
    found: Facts = {}
    for line in record.read(file):
        key = (line["repro"], line["variant"], line["strategy"], line["device"], line["stack"]["name"])
        endings = sorted(
            (process["process"], process["ending"], process["code"], process["signal"]) for process in line["observed"]
        )
        found[key] = (line["verdict"], line["signature"], line["reason"], line["stack"], line["platform"], endings)
    return found


def measure(folder: Path, name: str, words: Sequence[str], address: str | None = None) -> tuple[Facts, int]:
    """Measure cells with `repros matrix`, on the cluster if there is an address.

    Returns:
        The facts of each cell, and how many could not be judged at first.
    """
    results = folder / f"{name}.jsonl"
    command = [sys.executable, "-m", "repros", "matrix", *words, "--keep", "--results", str(results)]
    command += ["--evidence", str(folder / name), *(["--on", "ray"] if address else [])]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **({"RAY_ADDRESS": address} if address else {})}
    subprocess.run(command, cwd=folder, env=environ, check=False)
    unjudged = sum(found[0] == "infra" for found in facts(results).values())
    if unjudged:
        subprocess.run(command, cwd=folder, env=environ, check=False)
    return facts(results), unjudged


def differences(here: Facts, there: Facts) -> list[str]:
    """Return a line for each cell whose facts are not the same on both sides."""
    return [
        f"{' '.join(key)}: {here.get(key)} here, {there.get(key)} on the cluster"
        for key in sorted({*here, *there})
        if here.get(key) != there.get(key)
    ]


def main() -> int:
    """Compare and print; return 1 if there is no cell, or one whose verdict differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--stack", action="append", metavar="NAME", help=f"default: {' and '.join(STACKS)}")
    parser.add_argument("--out", type=Path, metavar="FILE", help="keep the figures in this file")
    given = parser.parse_args()
    stacks = given.stack or STACKS
    words = [*given.ids, *(word for name in stacks for word in ("--stack", name))]
    folder = Path(tempfile.mkdtemp(prefix="compare-"))
    try:
        here, unjudged_here = measure(folder, "here", words)
        with local_cluster(workers=2, cores=1, own_cache=False) as cluster:
            there, unjudged_there = measure(folder, "there", words, cluster.address)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    wrong = {key for key in {*here, *there} if here.get(key, ("none",))[0] != there.get(key, ("none",))[0]}
    differing = differences(here, there)
    figures: dict[str, Any] = {
        "repros": len({key[0] for key in here}),
        "stacks": list(stacks),
        "cells": len(here),
        "verdicts": dict(sorted(Counter(str(found[0]) for found in here.values()).items())),
        "infra at first": {"here": unjudged_here, "on the cluster": unjudged_there},
        "other verdicts": len(wrong),
        "other facts": len(differing),
    }
    print(figures, *differing, sep="\n")
    if given.out:
        keep(given.out, "compare", figures)
    return 1 if wrong or not here else 0


if __name__ == "__main__":
    sys.exit(main())
