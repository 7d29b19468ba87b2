# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0058"
# title = "An evaluation counts samples that DistributedSampler repeats"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/25162",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/2398",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/4732",
#     "https://github.com/Lightning-AI/torchmetrics/issues/1338",
#     "https://github.com/roboflow/rf-detr/issues/1507",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "three samples on two ranks, summed over the ranks"
# raises = "AssertionError"
# match = "expected the sum 102.0 of the three samples, got 202.0"
#
# [tool.repro.variants.fixed]
# about = "give each rank every second sample, without repetition"
# source = "https://github.com/pytorch/pytorch/issues/25162"
#
# [tool.repro.variants.drop_last]
# outcome = "fails"
# about = "drop_last=True drops samples instead"
# raises = "AssertionError"
# match = "expected the sum 102.0 of the three samples, got 101.0"
#
# [tool.repro.variants.even]
# outcome = "passes"
# contrast = true
# about = "with four samples on two ranks nothing is repeated"
# ///
"""A metric over several GPUs differs a little from that on one, by up to world size - 1 samples.

Symptom: accuracy, loss or a confusion matrix depends on the number of GPUs; the counts add up to more than the dataset
has. Silent.

Cause: `DistributedSampler` gives every rank the same number of samples, as collectives in a training need it: it
repeats samples from the beginning, or with `drop_last` leaves out the last ones.

Fix: evaluate on one device, or with a sampler without repetition and collectives that allow uneven ranks.

Watch: no check sees it, since what an evaluation counts is known to the program alone.
"""

import os
import sys

import torch
from torch import distributed
from torch.distributed import run
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler

DATA = torch.tensor([100.0, 1.0, 1.0])


def failing():
    return DataLoader(DATA, sampler=DistributedSampler(DATA, shuffle=False))


def fixed():
    return DataLoader(Subset(DATA, range(distributed.get_rank(), len(DATA), distributed.get_world_size())))


def drop_last():
    return DataLoader(DATA, sampler=DistributedSampler(DATA, shuffle=False, drop_last=True))


def even():
    data = torch.tensor([100.0, 1.0, 1.0, 0.0])
    return DataLoader(data, sampler=DistributedSampler(data, shuffle=False))


VARIANTS = {v.__name__: v for v in (failing, fixed, drop_last, even)}


def train(variant):
    distributed.init_process_group("gloo")
    total = torch.zeros(1)
    for batch in VARIANTS[variant]():
        total += batch
    distributed.all_reduce(total)
    got = total.item()
    assert got == 102.0, f"expected the sum 102.0 of the three samples, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
