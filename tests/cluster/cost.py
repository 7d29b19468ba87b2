"""Measure what a cell costs on a local cluster of two nodes, beyond what it costs on this machine.

    python -m tests.cluster.cost [--rounds N] [--out FILE]

Forty cells that end at once run in turn here and on the cluster, one at a time and two at a time. The time of a cell is
that between the first and the last result, divided by the results in between: environments, processes on the nodes and
the import of the libraries are there by then.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from repros.cluster import open_cluster
from repros.engine.catalogue import load
from repros.engine.environment import Targets
from repros.engine.local import HERE
from repros.engine.pipeline import run_specs
from repros.engine.plan import Selection, select
from repros.engine.run_options import Engine, Observer, RunOptions
from repros.engine.stacks import load_stacks
from repros.model import Category
from repros.model.settings import CatalogueLocations
from tests.cluster.kept import keep
from tests.cluster.local import local_cluster, write_catalogue

CELLS = 40
TOY = Path(__file__).with_name("toys") / "ends_at_once.py"


def seconds_per_cell(engine: Engine, jobs: int, places: CatalogueLocations, out: Path) -> float:
    """Run the toy's cells; return the seconds between two results."""
    specs = select(load(places.scripts, places), Selection())
    where = Targets(("tiny",), known=load_stacks(places))
    times = []
    for result in run_specs(specs, where, out, Observer(), RunOptions(jobs=jobs, engine=engine)):
        assert result.verdict.category is Category.AGREES, result
        times.append(time.monotonic())
    assert len(times) == len(specs) == CELLS
    return (times[-1] - times[0]) / (len(times) - 1)


def main() -> int:
    """Measure and print; return 1 if a cell costs 50 ms or more beyond this machine's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, metavar="FILE", help="keep the figures in this file")
    given = parser.parse_args()
    measured = measure(given.rounds)
    worst = max(row["on the cluster"] - row["here"] for row in measured.values())
    print(f"beyond this machine: at most {worst:.0f} ms a cell")
    if given.out:
        keep(given.out, "cost", {"rounds": given.rounds, "cells": CELLS, "milliseconds": measured})
    return 1 if worst >= 50 else 0


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Return the milliseconds of a cell here and on the cluster, by how many run at a time."""
    folder = Path(tempfile.mkdtemp(prefix="cost-"))
    places = CatalogueLocations(from_option=(write_catalogue(folder, TOY),))
    measured: dict[str, dict[str, float]] = {}
    try:
        with local_cluster(workers=2, cores=1) as cluster:
            os.environ["RAY_ADDRESS"] = cluster.address
            for jobs in (1, 2):
                with open_cluster("ray", jobs) as there:
                    found: dict[str, list[float]] = {"here": [], "on the cluster": []}
                    engines: dict[str, Engine] = {"here": HERE, "on the cluster": there}
                    for _ in range(rounds):
                        for name, engine in engines.items():
                            found[name].append(seconds_per_cell(engine, jobs, places, folder / "results.jsonl"))
                measured[str(jobs)] = {name: round(1000 * statistics.median(times), 1) for name, times in found.items()}
                spread = {name: [round(1000 * seconds) for seconds in sorted(times)] for name, times in found.items()}
                print(f"{jobs} at a time, in ms: {measured[str(jobs)]}; all {spread}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return measured


if __name__ == "__main__":
    sys.exit(main())
