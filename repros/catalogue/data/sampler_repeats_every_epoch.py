# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0063"
# title = "DistributedSampler repeats its order unless set_epoch is called"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/11324",
#     "https://github.com/pytorch/pytorch/issues/31232",
#     "https://github.com/pytorch/pytorch/issues/31771",
#     "https://github.com/pytorch/pytorch/issues/40043",
#     "https://github.com/kan-bayashi/ParallelWaveGAN/issues/177",
#     "https://github.com/lucidrains/DALLE-pytorch/pull/230",
#     "https://github.com/rosinality/stylegan2-pytorch/issues/319",
#     "https://github.com/Snowdar/asv-subtools/issues/8",
#     "https://github.com/Spijkervet/SimCLR/pull/26",
#     "https://github.com/yangkky/distributed_tutorial/issues/5",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
# finds = ["epoch_not_set"]
#
# [tool.repro.variants.failing]
# about = "train for two epochs with a loader that shuffles through the sampler"
# raises = "AssertionError"
# match = "expected another order in epoch 1, got [4, 7, 2, 1] twice"
#
# [tool.repro.variants.fixed]
# about = "call set_epoch before each epoch"
# source = "https://pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler"
#
# [tool.repro.variants.seeded_each_epoch]
# outcome = "fails"
# about = "seed torch anew for each epoch instead: the sampler draws from a generator of its own"
# ///
"""A distributed training sees its samples in one order in all epochs.

Symptom: with `shuffle=True` each rank gets the same batches in the same order epoch after epoch; the model trains, a
little worse. Silent.

Cause: `DistributedSampler.__iter__` makes a generator with the seed `seed + epoch` each time, so that all ranks draw
one permutation without communication. Nothing but `set_epoch` changes `epoch`, and torch's global seed has no part in it.

Fix: `sampler.set_epoch(epoch)` before the loader's iterator is made. Trainers call it for the samplers that they know.
"""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def failing(sampler, epoch):
    pass


def fixed(sampler, epoch):
    sampler.set_epoch(epoch)


def seeded_each_epoch(sampler, epoch):
    torch.manual_seed(epoch)


VARIANTS = {v.__name__: v for v in (failing, fixed, seeded_each_epoch)}


def train_epoch(layer, optimizer, loader, accelerator):
    seen = []
    for (batch,) in loader:
        seen.append(int(batch))
        optimizer.zero_grad()
        layer(batch.to(accelerator)).sum().backward()
        optimizer.step()
    return seen


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    data = TensorDataset(torch.arange(8.0).unsqueeze(1))
    # The share of rank 0 of two; that of rank 1 is as much the same in both epochs.
    sampler = DistributedSampler(data, num_replicas=2, rank=0, shuffle=True)
    loader = DataLoader(data, batch_size=1, sampler=sampler)
    layer = torch.nn.Linear(1, 1, device=accelerator)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    orders = []
    for epoch in range(2):
        VARIANTS[variant](sampler, epoch)
        orders.append(train_epoch(layer, optimizer, loader, accelerator))
    assert orders[0] != orders[1], f"expected another order in epoch 1, got {orders[1]} twice"


if __name__ == "__main__":
    main(*sys.argv[1:])
