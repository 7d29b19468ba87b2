"""Run Python on the CUDA stub: `python -m repros.simulated_gpus.tools.cuda_stub ARGUMENTS`.

With `-m repros.simulated_gpus.tools.placement --device cuda --out FILE` as arguments it records what CUDA's own code
does with each line of the placement table.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from .build import NoRuntimeError, build_stub, stub_environ


def main() -> int:
    """Run Python on the stub and return its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            shared_object = build_stub(Path(folder))
        except NoRuntimeError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        return subprocess.run([sys.executable, *sys.argv[1:]], env=stub_environ(shared_object), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
