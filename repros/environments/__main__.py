"""`python -m repros.environments NAME`: make a stack's environment and print its interpreter's path."""

from __future__ import annotations

import sys

from repros.environments.store import ensure
from repros.stacks import stack


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.stdout.write(f"{ensure(stack(sys.argv[1]), _say)}\n")
