# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9021"
# title = "Two ranks wait for each other for ever"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9021"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 100
#
# [tool.repro.variants.failing]
# about = "each waits for a message of the other"
# ends = "hang"
#
# [tool.repro.variants.with_a_loader]
# outcome = "fails"
# about = "the same, with a data loader's idle workers"
#
# [tool.repro.variants.at_exit]
# outcome = "fails"
# about = "rank 0 has returned and waits in an exit handler"
#
# [tool.repro.variants.spawned]
# outcome = "fails"
# about = "the same as failing, in ranks that the main process has spawned"
# ///
"""Wait for the other rank for ever."""

from __future__ import annotations

import atexit
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


def failing(rank):
    dist.recv(torch.zeros(1), src=1 - rank)


def with_a_loader(rank):
    batches = iter(DataLoader([1.0, 2.0, 3.0, 4.0], num_workers=2))
    next(batches)
    failing(rank)


def at_exit(rank):
    if rank == 0:
        atexit.register(dist.barrier)
    else:
        failing(rank)


VARIANTS = {act.__name__: act for act in (failing, with_a_loader, at_exit)}


def run_rank(rank, variant):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    VARIANTS[variant](rank)


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if variant == "spawned":
        torch.multiprocessing.spawn(run_rank, ("failing",), nprocs=2)
    else:
        run_rank(int(os.environ["RANK"]), variant)


if __name__ == "__main__":
    main(*sys.argv[1:])
