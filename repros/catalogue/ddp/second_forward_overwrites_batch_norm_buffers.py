# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0031"
# title = "Under DDP a second forward overwrites batch norm buffers saved for the first one's backward"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/175024",
#     "https://github.com/pytorch/pytorch/issues/66504",
#     "https://github.com/pytorch/pytorch/issues/22095",
#     "https://github.com/pytorch/pytorch/issues/65907",
#     "https://github.com/pytorch/pytorch/issues/110363",
# ]
# upstream.fixed_by = ["https://github.com/pytorch/pytorch/pull/175851"]
# packages = ["torch"]
# affected = ["torch<2.12"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "two forwards, then one backward through both"
# raises = "RuntimeError"
# match = "has been modified by an inplace operation: [torch.FloatTensor [2]] is at version"
#
# [tool.repro.variants.fixed]
# about = "broadcast_buffers=False (or torch 2.12)"
# source = "https://github.com/pytorch/pytorch/issues/110363"
#
# [tool.repro.variants.one_forward]
# outcome = "passes"
# about = "one forward over both batches"
#
# [tool.repro.variants.inputs_cloned]
# outcome = "fails"
# about = "each forward gets a copy of its input"
# ///
"""A GAN's discriminator, fed real and fake samples before one backward, trains on one GPU and dies under DDP.

Symptom: `RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation`,
though no line of the model works in place. Without DDP the same code trains.

Cause: before each training forward `DistributedDataParallel._sync_buffers` broadcasts rank 0's buffers to all ranks, in
place. A batch norm's running statistics are saved for its backward, and the broadcast raises their version counter
after the first forward. No needed value is lost: a training backward does not use them. An upstream report names torch
2.6 as the first release with the failure; 2.0.1, 2.1.2 and 2.4.1 have it as well.

Fix: torch 2.12 broadcasts without raising the counter. Before: `broadcast_buffers=False`, or one forward over both
batches.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(layers, real, fake):
    model = DistributedDataParallel(layers)
    (model(real).sum() - model(fake).sum()).backward()


def fixed(layers, real, fake):
    model = DistributedDataParallel(layers, broadcast_buffers=False)
    (model(real).sum() - model(fake).sum()).backward()


def one_forward(layers, real, fake):
    model = DistributedDataParallel(layers)
    real, fake = model(torch.cat([real, fake])).chunk(2)
    (real.sum() - fake.sum()).backward()


def inputs_cloned(layers, real, fake):
    model = DistributedDataParallel(layers)
    (model(real.clone()).sum() - model(fake.clone()).sum()).backward()


VARIANTS = {v.__name__: v for v in (failing, fixed, one_forward, inputs_cloned)}


def train(variant):
    distributed.init_process_group("gloo")
    layers = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    real, fake = torch.rand(4, 2), torch.rand(4, 2)
    VARIANTS[variant](layers, real, fake)


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
