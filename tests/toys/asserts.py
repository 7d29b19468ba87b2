# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9002"
# title = "A silent wrong result"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9002"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# deadline = 20
# silent = true
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "AssertionError"
# match = "the sum is wrong: 5"
#
# [tool.repro.variants.fixed]
# about = "sums correctly"
# ///
"""Symptom: a sum that is wrong.

Cause: it is a toy.

Fix: none.
"""

from __future__ import annotations

import sys


def main(variant="failing", strategy="plain", accelerator="cpu"):
    total = 2 + 2 if variant == "fixed" else 5
    assert total == 4, f"the sum is wrong: {total}"


if __name__ == "__main__":
    main(*sys.argv[1:])
