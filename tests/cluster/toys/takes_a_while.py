# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "ACME-9200"
# title = "A cell that a node may die under"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9200"]
# packages = ["torch"]
# home = "tiny"
# strategies = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"]
# processes = 2
# deadline = 60
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# about = "returns"
# ///
"""Two ranks that work for a second or so, rank 0 with a daemon of its own, and end as documented.

Nothing in them is random but the time: whatever happens to their node, no other ending is right.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time


def join():
    # The event that the hook writes when ranks join torch's process group, which this toy does without.
    cell, rank = os.environ["REPROS_CELL"], os.environ.get("LOCAL_RANK", "0")
    with open(f"{cell}/processes/{os.getpid()}/events.jsonl", "a") as file:
        file.write(f'\n{{"event": "joined", "rank": {rank}, "world_size": 2, "time": {time.monotonic()}}}\n')


def main(variant="failing", strategy="a", accelerator="cpu"):
    join()
    if os.environ.get("LOCAL_RANK", "0") == "0":
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(random.uniform(0.2, 2.0))
    if variant == "failing":
        raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
