# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9007"
# title = "A flood of output"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9007"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 60
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.on_rank_1]
# outcome = "fails"
# about = "the flood comes from a re-launched rank"
# ///
"""Print 200 MB, from the main process or from a rank, then raise."""

from __future__ import annotations

import os
import subprocess
import sys


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if variant == "on_rank_1" and "LOCAL_RANK" not in os.environ:
        subprocess.run([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1"), check=False)
        return
    print("the first line")
    block = ("0123456789" * 10 + "\n") * 10_000
    for _ in range(200):
        sys.stdout.write(block)
    sys.stdout.flush()
    print("the last line")
    raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
