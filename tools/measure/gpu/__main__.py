"""`python -m tools.measure.gpu record --out DIR` on a machine with a GPU, then `... take DIR` in a checkout.

`record` needs an NVIDIA GPU, no network, and a Python from 3.11 on with torch, lightning and accelerate. It writes at
most eight small files, each as soon as it is complete, and stops in time: what came too late is missing, nothing else.
`take` puts the files into the repository, as evidence and as records that the tests compare with. `... compare DIR`
compares a recording of the same torch on a simulated GPU (`repros simulate --gpus 1 --like h200 -- python -m
tools.measure.gpu record --out DIR`) with them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from repros.simulated_gpus.tools.gpu import files

from . import record


def main(arguments: list[str] | None = None) -> int:
    """Run one of the two commands; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.gpu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="record what this machine's GPU does")
    recording.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    recording.add_argument("--minutes", type=float, default=9.0, help="stop after this time (default: 9)")
    recording.add_argument("--part", action="append", choices=record.PARTS, help="only this part; may be repeated")
    recording.add_argument("--operators", default="", help="only operators whose name contains one of these texts")
    taking = commands.add_parser("take", help="put the recorded files into this checkout")
    taking.add_argument("folder", type=Path, metavar="DIR", help="a folder that `record` wrote")
    comparing = commands.add_parser("compare", help="compare a simulated GPU's recording with the GPU's")
    comparing.add_argument("folder", type=Path, metavar="DIR", help="a folder that `record` wrote on a simulated GPU")
    options = parser.parse_args(arguments)
    try:
        if options.command == "record":
            return record.record(options.out, options.minutes, options.part or record.PARTS, options.operators)
        from . import compare, take  # not on the machine with the GPU: they need more of the project

        if options.command == "compare":
            compare.keep(options.folder)
            return 0
        return take.take(options.folder)
    except files.RefusedError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
