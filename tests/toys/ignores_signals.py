# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9006"
# title = "A process that obeys no signal"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9006"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# deadline = 2
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# ends = "hang"
#
# [tool.repro.variants.stopped]
# outcome = "fails"
# about = "stops itself with SIGSTOP"
#
# [tool.repro.variants.asleep]
# outcome = "fails"
# about = "sleeps without a signal handler"
#
# [tool.repro.variants.undocumented]
# outcome = "fails"
# about = "hangs although an exception is documented"
# raises = "RuntimeError"
# match = "the documented failure"
# ///
"""Sleep for an hour and ignore SIGINT and SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
import time


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if variant == "failing":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if variant == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
