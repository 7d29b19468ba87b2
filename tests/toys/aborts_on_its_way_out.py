# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9019"
# title = "A good run with a bad exit code"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9019"]
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
# about = "an exit handler of Python's aborts"
#
# [tool.repro.variants.in_c]
# outcome = "passes"
# about = "an exit handler of C's aborts"
# ///
"""Return, then abort while the interpreter shuts down."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if variant == "fixed":
        atexit.register(os.abort)
    elif variant == "in_c":
        # As C++ does for a thread that was not joined: after all of Python's own handlers.
        abort = ctypes.CFUNCTYPE(None)(("abort", ctypes.CDLL(None)))
        ctypes.CDLL(None).__cxa_atexit(abort, None, None)
    else:
        raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
