# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9009"
# title = "SIGKILL"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9009"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# ends = "signal SIGKILL"
#
# [tool.repro.variants.undocumented]
# outcome = "fails"
# about = "is killed although an exception is documented"
# raises = "RuntimeError"
# match = "the documented failure"
# ///
"""Kill the own process with SIGKILL, which cannot be caught."""

from __future__ import annotations

import os
import signal
import sys


def main(variant="failing", strategy="plain", accelerator="cpu"):
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
