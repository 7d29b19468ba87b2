# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9005"
# title = "Two ranks wait for each other"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9005"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 25
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# ends = "hang"
# ///
"""Reduce on rank 0 while rank 1 waits for a message that no rank sends."""

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
    if rank == 0:
        dist.all_reduce(torch.ones(1))
    else:
        dist.recv(torch.ones(1), src=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
