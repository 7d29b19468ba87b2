"""`python -m tests.tools.conformance`: all operators in worker processes, then what was found.

Exit code 1 when something differs that `known.py` does not name, or when an entry of it names nothing that differs.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.tools.cuda_stub.build import NoRuntimeError

from . import figures, known, run
from .reference import CPU, REFERENCES


def main() -> int:
    """Run, print, and say by the exit code whether all is as it is known to be."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.conformance", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes side by side")
    parser.add_argument("--operators", default="", help="only those whose name holds one of these texts (TEXT,TEXT)")
    parser.add_argument(
        "--against", choices=REFERENCES, default=CPU.name, help="cuda: types and strides as CUDA's own code has them"
    )
    parser.add_argument("--keep", action="store_true", help="keep the figures in the repository")
    given = parser.parse_args()
    if given.keep and given.operators:
        parser.error("only the figures of a whole run are kept")
    version, names = run.about()
    parts = given.operators.split(",")
    chosen = [index for index, name in enumerate(names) if any(part in name for part in parts)]
    if not chosen:
        parser.error(f"no operator's name holds {given.operators!r}")
    done = 0

    def progress(found: list[run.Found]) -> None:
        nonlocal done
        done += len({one.operator for one in found})
        sys.stderr.write(f"torch {version}: {done} of {len(chosen)} operators\n")

    try:
        found = run.operators(chosen, max(1, given.jobs), progress, against=REFERENCES[given.against])
    except NoRuntimeError as why:
        parser.error(str(why))
    if given.keep:
        figures.keep(figures.make(version, found, given.against))
    return judged(version, found, given.against)


def judged(version: str, found: list[run.Found], against: str = CPU.name) -> int:
    """Print what is not as it is known to be, then the figures; the exit code."""
    entries = known.of_version(version, against)
    unknown, stale = known.uncovered(found, entries), known.stale(found, entries)
    for one in unknown:
        print(f"{one.operator} {one.dtype} {one.form}: {one.wrong} of {one.samples} samples, {one.first}")
    for one in (one for one in found if one.first and not one.samples):
        print(f"{one.operator} {one.dtype} {one.form}: not asked of the device, {against} {one.first}")
    for entry in stale:
        print(f"{entry.operator} passes everywhere now and has to leave known.py: {entry.reason}")
    print(figures.told(figures.make(version, found, against)))
    return 1 if unknown or stale else 0


if __name__ == "__main__":
    sys.exit(main())
