# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9017"
# title = "A script that writes where it should not"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9017"]
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
# [tool.repro.variants.emptied]
# outcome = "fails"
# about = "empties the file"
#
# [tool.repro.variants.removed]
# outcome = "fails"
# about = "removes the file, so that only the exit code is left"
# ///
"""Damage the events that the engine's hook wrote, then raise."""

from __future__ import annotations

import os
import sys
from pathlib import Path

GARBAGE = b'\xff\x00\n[1]\n"text"\n{"event": 1, "time": "x"}\n' + b"[" * 100_000 + b'\n{"event": "raised", '


def main(variant="failing", strategy="plain", accelerator="cpu"):
    events = Path(os.environ["REPROS_CELL"], "processes", str(os.getpid()), "events.jsonl")
    if variant == "failing":
        with events.open("ab") as file:
            file.write(GARBAGE)
    if variant == "emptied":
        os.truncate(events, 0)
    if variant == "removed":
        events.unlink()
    raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
