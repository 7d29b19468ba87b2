# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0078"
# title = "WeightedRandomSampler draws the same samples on every rank"
# kind = "limitation"
# documented = "https://github.com/pytorch/pytorch/issues/77154"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/77154",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/3716",
#     "https://github.com/crosszamirski/WS-DINO/issues/1",
# ]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/pull/150182",
#     "https://github.com/pytorch/pytorch/pull/159479",
#     "https://github.com/huggingface/accelerate/issues/2865",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/10946",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/12866",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "one seed on all ranks, and a weighted sampler on each"
# raises = "AssertionError"
# match = "expected ranks with samples of their own, got 8 of 8 that both ranks drew"
#
# [tool.repro.variants.fixed]
# about = "one draw of a shared generator, of which each rank takes its part"
#
# [tool.repro.variants.distributed_sampler]
# outcome = "fails"
# about = "wrap the drawn indices in DistributedSampler: the order is shared out, and the draw stays at its first"
# raises = "AssertionError"
# match = "expected another draw in epoch 1, got the 8 of epoch 0 again"
# ///
"""With a weighted sampler each rank of a distributed training sees the same samples.

Symptom: two GPUs train no faster than one: the gradients of the ranks are equal. Silent.

Cause: `WeightedRandomSampler` knows nothing of ranks. It draws from torch's generator, which programs seed with one seed
on all ranks, so that all draw the same. `DistributedSampler` takes a dataset, and no sampler.

Fix: draw all indices with one generator that is seeded by the epoch, and give each rank every n-th of them. Lightning's
`Trainer` and accelerate's `prepare` share out a loader's sampler on their own.

Watch: `ranks_fed_alike` finds it, whatever the cause is, and so cannot name it.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

DATA = TensorDataset(torch.arange(1000.0).unsqueeze(1) + torch.arange(64.0) / 100)
WEIGHTS = torch.ones(1000)


def failing():
    return lambda epoch: WeightedRandomSampler(WEIGHTS, 8)


def fixed():
    def sampler(epoch):
        drawn = list(WeightedRandomSampler(WEIGHTS, 16, generator=torch.Generator().manual_seed(epoch)))
        return drawn[distributed.get_rank() :: 2]

    return sampler


def distributed_sampler():
    drawn = list(WeightedRandomSampler(WEIGHTS, 16))
    return lambda epoch: [drawn[index] for index in DistributedSampler(drawn, shuffle=False)]


VARIANTS = {v.__name__: v for v in (failing, fixed, distributed_sampler)}


def train(variant):
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    ddp = DistributedDataParallel(nn.Linear(64, 1))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.0)
    sampler, epochs = VARIANTS[variant](), []
    for epoch in range(2):
        epochs.append([])
        for (batch,) in DataLoader(DATA, sampler=sampler(epoch), batch_size=1):
            epochs[-1].append(int(batch[0, 0]))
            optimizer.zero_grad()
            ddp(batch).sum().backward()
            optimizer.step()
    ranks = [None, None]
    distributed.all_gather_object(ranks, epochs[0])
    got = len({*ranks[0]} & {*ranks[1]})
    assert got < 8, f"expected ranks with samples of their own, got {got} of 8 that both ranks drew"
    assert epochs[0] != epochs[1], "expected another draw in epoch 1, got the 8 of epoch 0 again"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
