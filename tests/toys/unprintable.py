# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9013"
# title = "An exception without a message"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9013"]
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
# [tool.repro.variants.alone]
# outcome = "fails"
# about = "raises nothing else"
# ///
"""Raise an exception whose `__str__` raises, while handling the documented one or alone."""

from __future__ import annotations

import sys


class UnprintableError(Exception):
    exceptions = 5  # an exception group has it as a sequence

    def __str__(self):
        raise SystemError("no words")

    __repr__ = __str__


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if variant == "failing":
        raise UnprintableError from RuntimeError("the documented failure")
    raise UnprintableError


if __name__ == "__main__":
    main(*sys.argv[1:])
