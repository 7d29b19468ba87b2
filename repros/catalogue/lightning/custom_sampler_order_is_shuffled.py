# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0122"
# title = "A custom sampler's order is shuffled under DDP"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21447",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21131",
# ]
# upstream.unreleased_fix = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21449"]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/issues/2857"]
# packages = ["lightning"]
# home = "2026-07"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "a sampler that goes from the shortest to the longest, which Lightning wraps for DDP"
# raises = "AssertionError"
# match = [
#     "rank 0: expected the samples [0, 2, 4, 6] in this order, got [4, 7, 2, 1]",
#     "rank 1: expected the samples [1, 3, 5, 7] in this order, got [0, 3, 5, 6]",
# ]
#
# [tool.repro.variants.fixed]
# about = "a distributed sampler with that order, which Lightning leaves as it is"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/21447"
#
# [tool.repro.variants.unwrapped]
# outcome = "fails"
# about = "use_distributed_sampler=False alone: the order is kept, and each rank trains on all of the data"
# raises = "AssertionError"
# match = "in this order, got [0, 1, 2, 3, 4, 5, 6, 7]"
# claim = "with use_distributed_sampler=False and a sampler of one's own the data is not shuffled"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/2857"
# ///
"""A sampler that orders the training data has no say over the order once DDP is on.

Symptom: a curriculum, a bucketing by length or a sequence in time comes in random order as soon as there is more than
one process, or strategy="ddp" with one. Silent.

Cause: Lightning wraps a custom sampler in `DistributedSamplerWrapper`, a `DistributedSampler` over the list of what the
sampler yields. For a training loader it is made with `shuffle=True` whenever the loader's sampler is not a
`SequentialSampler`, and so shuffles that list.

Fix: none in a release. Write a sampler that is a `DistributedSampler`, which is not wrapped.

Watch: there is no check for it yet: one would have to compare the order of the sampler that was given with that of its
wrapper.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, Sampler

DATA = torch.arange(8.0).view(8, 1)


class Ascending(Sampler):
    def __init__(self):
        pass

    def __iter__(self):
        return iter(range(8))

    def __len__(self):
        return 8


class Model(LightningModule):
    """A model that makes its loader itself, since a DistributedSampler needs the process group."""

    def __init__(self, sampler):
        super().__init__()
        self.layer, self.sampler, self.order = nn.Linear(1, 1), sampler, []

    def train_dataloader(self):
        return DataLoader(DATA, sampler=self.sampler())

    def training_step(self, batch, batch_idx):
        self.order.append(int(batch))
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing():
    return Model(Ascending), {}


def fixed():
    return Model(lambda: DistributedSampler(DATA, shuffle=False)), {}


def unwrapped():
    return Model(Ascending), {"use_distributed_sampler": False}


VARIANTS = {v.__name__: v for v in (failing, fixed, unwrapped)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, options = VARIANTS[variant]()
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=2, max_epochs=1, barebones=True, **options)
    trainer.fit(model)
    rank = trainer.global_rank
    expected = list(range(rank, 8, 2))  # each rank takes every second of the order
    assert model.order == expected, f"rank {rank}: expected the samples {expected} in this order, got {model.order}"


if __name__ == "__main__":
    main(*sys.argv[1:])
