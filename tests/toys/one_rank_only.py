# /// script
# requires-python = ">=3.9"
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9015"
# title = "A rank that never ran"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9015"]
# packages = ["torch"]
# affected = []
# home = "current"
# strategies = ["plain"]
# devices = ["cpu"]
# processes = 2
# deadline = 20
#
# [tool.repro.variants.failing]
# outcome = "fails"
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# outcome = "passes"
# about = "returns with one rank"
# ///
"""Return, although only one of two ranks was started."""

from __future__ import annotations

print("rank 0 here, and nobody else")
