# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9011"
# title = "A re-launched rank raises"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9011"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# about = "both ranks return"
# ///
"""Raise on rank 1; rank 0 only gets its exit code."""

from __future__ import annotations

import os
import subprocess
import sys


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if "LOCAL_RANK" not in os.environ:
        done = subprocess.run([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1"), check=False)
        sys.exit(done.returncode)
    print("rank 1 here")
    if variant == "failing":
        raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
