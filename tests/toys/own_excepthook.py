# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9016"
# title = "A script with an excepthook of its own"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9016"]
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
"""Override sys.excepthook with one that prints nothing."""

from __future__ import annotations

import sys

sys.excepthook = lambda *_: None


def main(variant="failing", strategy="plain", accelerator="cpu"):
    raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
