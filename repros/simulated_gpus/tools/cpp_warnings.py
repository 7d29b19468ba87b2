"""Check the simulator's C++ with the compiler's warnings: `python -m repros.simulated_gpus.tools.cpp_warnings`.

PyTorch's headers are system headers (`-isystem`), so only this project's own code is judged. Run inside an environment
with torch.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from repros.simulated_gpus import build

# Optimised and to the end of code generation, as a build is: some warnings (`-Wmaybe-uninitialized`) come from there.
FLAGS = ["-Wall", "-Wextra", "-Werror", "-S", "-o", "/dev/null"]


def main() -> int:
    """Print the compiler's messages; return 1 if there are any."""
    torch = build.installed_torch()
    with tempfile.TemporaryDirectory() as name:
        units = build.write_units(torch, Path(name))
        outcomes = build.compile_units(torch, units, [FLAGS] * len(units))
    sys.stderr.write("".join(outcome.stdout for outcome in outcomes))
    return int(any(outcome.returncode != 0 for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
