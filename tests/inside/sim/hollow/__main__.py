"""`python -m tests.inside.sim.hollow ARGUMENTS`: runs Python so that torch's CUDA devices are there, and hollow.

With `-m tests.inside.sim.placement --device cuda --out FILE` it keeps what CUDA's own code says to each line there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from .build import NoRuntimeError, built, environment


def main() -> int:
    """Run it; its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            runtime = built(Path(folder))
        except NoRuntimeError as why:
            sys.stderr.write(f"{why}\n")
            return 2
        return subprocess.run([sys.executable, *sys.argv[1:]], env=environment(runtime), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
