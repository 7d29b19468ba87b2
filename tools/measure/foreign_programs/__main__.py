"""Run the programs: `python -m tools.measure.foreign_programs`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tools.measure.foreign_programs import documented, place, simulated, traincheck, under_watch
from tools.measure.foreign_programs.programs import DOCUMENTED, FILE, TRAINCHECK, read_programs

WAYS = {"watch": under_watch, "simulate": simulated, "documented": documented, "traincheck": traincheck}
"""How a program can be run."""
LISTS = {"documented": DOCUMENTED, "traincheck": TRAINCHECK}
"""Where the programs of a way are listed that has a list of its own."""


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=WAYS)
    parser.add_argument(
        "--python",
        type=Path,
        required=True,
        help="an interpreter with what the programs need; {stack} in it is a program's stack",
    )
    parser.add_argument("--sources", type=Path, default=Path("build/sources"), help="the clones of the repositories")
    parser.add_argument("--deadline", type=int, help="seconds for one program")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*", help="programs, repositories, or both: 'pytorch/examples mnist'")
    asked = parser.parse_intermixed_args()
    mode = WAYS[asked.way]
    deadline = asked.deadline or mode.DEADLINE
    for program in read_programs(LISTS.get(asked.way, FILE)):
        if not (program.uses_gpu if mode is simulated else asked.way in LISTS or not program.needs_gpu):
            continue
        if not asked.names or {program.name, program.source, f"{program.source} {program.name}"} & set(asked.names):
            python = Path(str(asked.python).format(stack=program.stack)).absolute()
            line = mode.run(program, python, asked.sources.absolute(), deadline)
            print(json.dumps(line), flush=True)
            if asked.keep:
                place.keep(mode.KEPT, line)


if __name__ == "__main__":
    main()
