# /// script
# requires-python = ">=3.9"
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9016"
# title = "A script with an excepthook of its own"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9016"]
# packages = ["torch"]
# affected = []
# home = "current"
# strategies = ["plain"]
# devices = ["cpu"]
# processes = 1
# deadline = 20
#
# [tool.repro.variants.failing]
# outcome = "fails"
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
