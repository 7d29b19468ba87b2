# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9004"
# title = "Rank 1 dies by SIGSEGV"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9004"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# ends = "signal SIGSEGV"
#
# [tool.repro.variants.unnoticed]
# outcome = "fails"
# about = "the main process does not notice"
#
# [tool.repro.variants.undocumented]
# outcome = "fails"
# about = "dies although an exception is documented"
# raises = "RuntimeError"
# match = "the documented failure"
# ///
"""Read address 0 on rank 1; rank 0 notices and exits with a code."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if "LOCAL_RANK" in os.environ:
        ctypes.string_at(0)
    rank_1 = subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1"))
    if variant == "unnoticed":
        time.sleep(2)
        os._exit(0)
    sys.exit(1 if rank_1.wait() else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
