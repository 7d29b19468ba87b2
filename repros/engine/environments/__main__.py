"""`python -m repros.engine.environments NAME`: make a stack's environment and print the path of its interpreter."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from repros.engine.environments.store import ensure
from repros.engine.stacks import stack
from repros.model.errors import ReprosError
from repros.model.settings import find_catalogues


def _report_progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main(arguments: Sequence[str]) -> None:
    """Make a stack's environment unless it exists, and print the path of its interpreter."""
    parser = argparse.ArgumentParser(prog="python -m repros.engine.environments", description=main.__doc__)
    parser.add_argument("name", metavar="NAME", help="a stack: see `repros stacks`")
    try:
        sys.stdout.write(f"{ensure(stack(parser.parse_args(arguments).name, find_catalogues()), _report_progress)}\n")
    except ReprosError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
