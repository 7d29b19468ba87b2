# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9018"
# title = "Bytes that are not text"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9018"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
# ///
"""Fill stdout with bytes of every value, then raise."""

from __future__ import annotations

import os
import sys


def main(variant="failing", strategy="plain", accelerator="cpu"):
    os.write(1, bytes(range(256)) * 100)
    raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
