"""Cost of simulated GPUs: epochs and the import of torch, alternately with and without them.

    python -m tools.bench.simulated [--rounds N] [--stack NAME] [--keep]

`--keep` puts the figures into `kept.json`; `python -m tools.bench.simulated_table` writes them into the README of the
accelerator.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from repros.engine import environments
from repros.engine.stacks import stack
from repros.simulated_gpus.tools.simulated import simulated_environ
from tools.bench import figures, machine
from tools.bench.kept import keep, spread

_IMPORT = """
import resource
import torch
used = resource.getrusage(resource.RUSAGE_SELF)
print(torch.__version__, used.ru_utime + used.ru_stime)
"""


def time_imports(python: Path, rounds: int) -> dict[str, Any]:
    """Return the processor seconds that simulated GPUs add to a process that imports torch, once they are compiled."""
    variables = simulated_environ()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("REPROS_SIM")}
    _import(python, plain | variables)
    added = []
    for _ in range(rounds):
        (version, without), (_, with_them) = _import(python, plain), _import(python, plain | variables)
        added.append(with_them - without)
    return {"torch": version, "rounds": rounds, "seconds": spread(added, 3)}


def _import(python: Path, environ: Mapping[str, str]) -> tuple[str, float]:
    done = subprocess.run([str(python), "-c", _IMPORT], env=environ, capture_output=True, text=True, check=True)
    version, seconds = done.stdout.split()
    return version, float(seconds)


def measure_simulated(python: Path, rounds: int) -> dict[str, Any]:
    """Time epochs and imports in an environment; return the figures."""
    observed = machine.Machine()
    return figures.measure_epochs(python, rounds) | {
        "import": time_imports(python, rounds),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": observed.describe(),
    }


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--stack", default="current")
    parser.add_argument("--keep", action="store_true", help="put the figures into tools/bench/kept.json")
    asked = parser.parse_args()
    measured = {"epochs": measure_simulated(environments.ensure(stack(asked.stack), print), asked.rounds)}
    print(json.dumps(measured, indent=2))
    if asked.keep:
        keep(measured)


if __name__ == "__main__":
    main()
