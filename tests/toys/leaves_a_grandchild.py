# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9008"
# title = "A process is left behind"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9008"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# about = "returns, and leaves the grandchild, too"
#
# [tool.repro.variants.foreign]
# outcome = "passes"
# about = "leaves a program behind that is not Python"
# ///
"""Leave a grandchild in a session of its own that keeps stdout open."""

from __future__ import annotations

import os
import subprocess
import sys
import time


def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(0)
    os.wait()


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if variant == "foreign":
        subprocess.Popen(["sleep", "3600"], start_new_session=True)
    else:
        daemon()
    if variant == "failing":
        raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
