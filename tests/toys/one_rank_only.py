# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9015"
# title = "A rank that never ran"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9015"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# about = "returns with one rank"
# ///
"""Return, although only one of two ranks was started."""

from __future__ import annotations

print("rank 0 here, and nobody else")
