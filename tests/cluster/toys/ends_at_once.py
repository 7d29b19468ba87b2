# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "ACME-9201"
# title = "A cell that takes no time"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9201"]
# packages = ["torch"]
# home = "tiny"
# strategies = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"]
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# about = "returns"
# ///
"""One rank that ends at once, so that a run of it takes what the engine takes."""

from __future__ import annotations

import sys


def main(variant="failing", strategy="a", accelerator="cpu"):
    if variant == "failing":
        raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
