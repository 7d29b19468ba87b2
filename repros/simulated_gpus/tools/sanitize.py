"""Run tests with the simulator's C++ built under AddressSanitizer and UndefinedBehaviorSanitizer.

`python -m repros.simulated_gpus.tools.sanitize ARGUMENTS` takes pytest's arguments, inside an environment with torch,
pytest and g++. The extension is instrumented, torch and Python are not; their memory is watched all the same, since
`malloc` is the sanitizer's. Fails if a test fails, or if a process of the tests has reported anything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from repros.simulated_gpus import build

FLAGS = "-fsanitize=address,undefined -fno-omit-frame-pointer -g"
PRELOADED = ("libasan.so", "libubsan.so", "libstdc++.so")
"""Python is not instrumented, so it must load the sanitizers first; they look for C++'s functions at their start."""
ASAN_OPTIONS = {
    "detect_leaks": 0,  # Python and torch free little at their end, and the devices' own objects outlive all tensors
    "allocator_may_return_null": 1,  # tests ask for more memory than there is, and expect the allocator's error
}
UBSAN_OPTIONS = {"print_stacktrace": 1}


def main(arguments: list[str]) -> int:
    """Run pytest, print what the sanitizers report, and return the exit status."""
    os.environ["REPROS_SIM_CXXFLAGS"] = FLAGS
    build.shared_object()  # before the compiler itself would run under the sanitizer
    with tempfile.TemporaryDirectory() as name:
        reports = Path(name)
        for sanitizer, options in (("asan", ASAN_OPTIONS), ("ubsan", UBSAN_OPTIONS)):
            given = {**options, "log_path": reports / sanitizer}
            os.environ[f"{sanitizer.upper()}_OPTIONS"] = ":".join(f"{key}={value}" for key, value in given.items())
        os.environ["LD_PRELOAD"] = ":".join(map(library, PRELOADED))
        tests = subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False)
        found = sorted(reports.iterdir())
        for report in found:
            sys.stderr.write(report.read_text(errors="replace"))
        sys.stderr.write(f"{len(found)} processes reported something to the sanitizers\n")
    return tests.returncode or int(bool(found))


def library(name: str) -> str:
    """Return the path of one of the compiler's libraries."""
    compiler = os.environ.get("CXX") or "g++"
    return subprocess.run(
        [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
