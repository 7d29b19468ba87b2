# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9014"
# title = "A rank dies and its peer notices"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9014"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# about = "both ranks return"
# ///
"""Raise on rank 1 while rank 0 waits in a collective, which the closed connection ends."""

from __future__ import annotations

import os
import subprocess
import sys

import torch
import torch.distributed as dist


def main(variant="failing", strategy="plain", accelerator="cpu"):
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    if "WORLD_SIZE" not in os.environ and rank == 0:
        subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1"))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    if rank == 1 and variant == "failing":
        raise RuntimeError("the documented failure")
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
