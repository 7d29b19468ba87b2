# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9020"
# title = "A rank that outlives the main process"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9020"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 6
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.raised]
# outcome = "fails"
# about = "the main process raises instead of returning"
#
# [tool.repro.variants.fixed]
# about = "rank 1 ends shortly after the main process"
# ///
"""Return from the main process while rank 1 runs for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import time


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if "LOCAL_RANK" in os.environ:
        time.sleep(1 if variant == "fixed" else 3600)
        return
    rank_1 = subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1"))
    time.sleep(0.5)
    rank_1.returncode = 0  # or Popen complains that it still runs
    if variant == "raised":
        raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
