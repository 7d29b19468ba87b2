# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9012"
# title = "One error hides another"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9012"]
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
"""Raise another error while handling the documented one, even with `from None`."""

from __future__ import annotations

import sys


def load():
    try:
        raise RuntimeError("the documented failure")
    finally:
        raise TypeError("teardown failed too")


def main(variant="failing", strategy="plain", accelerator="cpu"):
    try:
        load()
    except TypeError:
        raise ValueError("please call load() first") from None


if __name__ == "__main__":
    main(*sys.argv[1:])
