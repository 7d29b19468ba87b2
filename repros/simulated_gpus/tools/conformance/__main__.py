"""`python -m repros.simulated_gpus.tools.conformance`: run all operators in worker processes and print the differences.

The exit code is 1 if a difference is not listed in `known.py`, or if an entry there no longer differs.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from repros.simulated_gpus.tools.cuda_stub.build import NoRuntimeError

from . import figures, known, run

if TYPE_CHECKING:
    from collections.abc import Callable


COMPARE: dict[str, Callable[..., list[run.Found]]] = {
    "cpu": run.run_operators,
    "cuda": run.compare_with_cuda,
    "types": run.ask_types,
}


def main() -> int:
    """Run the operators and print a report; return 0 if every difference is a known one."""
    parser = argparse.ArgumentParser(prog="python -m repros.simulated_gpus.tools.conformance", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of worker processes")
    parser.add_argument(
        "--operators", default="", help="only operators whose name contains one of these texts (TEXT,TEXT)"
    )
    parser.add_argument(
        "--against",
        choices=figures.PREFIXES,
        default="cpu",
        help="cuda: compare types and strides with CUDA's own code; types: only ask which element types run",
    )
    parser.add_argument("--keep", action="store_true", help="keep the figures in the repository")
    options = parser.parse_args()
    if options.keep and options.operators:
        parser.error("--keep needs a run of all operators")
    version, names = run.torch_version_and_operators()
    parts = options.operators.split(",")
    chosen = [index for index, name in enumerate(names) if any(part in name for part in parts)]
    if not chosen:
        parser.error(f"no operator's name contains {options.operators!r}")
    done = 0

    def progress(found: list[run.Found]) -> None:
        nonlocal done
        done += len({combination.operator for combination in found})
        sys.stderr.write(f"torch {version}: {done} of {len(chosen)} operators\n")

    code = 0
    for against in ("cpu", "types") if options.against == "cpu" else (options.against,):
        done = 0
        try:
            found = COMPARE[against](chosen, max(1, options.jobs), progress)
        except NoRuntimeError as error:
            parser.error(str(error))
        if options.keep:
            figures.save(figures.make_figures(version, found, against))
        code |= report(version, found, against)
    return code


def report(version: str, found: list[run.Found], against: str = "cpu") -> int:
    """Print unknown differences, stale entries and the figures; return the exit code."""
    entries = known.entries_for(version, against)
    unknown = known.uncovered(found, entries)
    stale = [] if against == "types" else known.stale(found, entries)
    for it in unknown:
        print(f"{it.operator} {it.dtype} {it.form}: {it.wrong} of {it.samples} samples, {it.first}")
    for it in found:
        if it.first and not it.samples:
            print(f"{it.operator} {it.dtype} {it.form}: not run on the device, {against} {it.first}")
    for entry in stale:
        print(f"{entry.operator} now passes everywhere; remove it from known.py: {entry.reason}")
    print(figures.summary(figures.make_figures(version, found, against)))
    return 1 if unknown or stale else 0


if __name__ == "__main__":
    sys.exit(main())
