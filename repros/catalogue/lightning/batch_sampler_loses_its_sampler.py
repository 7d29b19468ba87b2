# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0115"
# title = "A BatchSampler under DDP loses its sampler, and its batches"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20326",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21122",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/3455",
# ]
# upstream.unreleased_fix = ["https://github.com/Lightning-AI/pytorch-lightning/pull/20327"]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20272",
#     "https://github.com/allenai/rslearn/pull/182",
# ]
# packages = ["lightning"]
# home = "2026-07"
# strategies = ["ddp"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "DataLoader(batch_sampler=BatchSampler(WeightedRandomSampler(...), 4, False))"
# raises = "AssertionError"
# match = "expected 4 batches of 4 samples out of 0 to 3, got 16 batches of 1 out of 0 to 15"
#
# [tool.repro.variants.fixed]
# about = "the same as sampler and batch_size, which Lightning wraps"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/20326"
#
# [tool.repro.variants.subclass]
# outcome = "fails"
# about = "a subclass of BatchSampler, which keeps its batches, and loses its sampler all the same"
# raises = "AssertionError"
# match = "expected 4 batches of 4 samples out of 0 to 3, got 4 batches of 4 out of 0 to 15"
# claim = "Lightning wraps a subclass of BatchSampler"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/21122"
#
# [tool.repro.variants.unwrapped]
# outcome = "passes"
# about = "use_distributed_sampler=False: the sampler is kept, and each rank draws a whole epoch"
# ///
"""A data loader with a batch sampler gives one sample at a time under DDP, out of all samples.

Symptom: with `batch_sampler=BatchSampler(...)` a training under DDP sees samples without a batch dimension, many times
as many steps, and samples whose weight is 0. With x and y of one shape there is no error.

Cause: Lightning makes the loader anew with a `DistributedSampler`. It takes `DataLoader.sampler` for the one to wrap,
which with a batch sampler is the default `SequentialSampler`, so the real one is not even seen. For a plain
`BatchSampler` it drops the batch sampler and keeps the loader's `batch_size`, which is None then: no batches are made.
The default collate function gets one pair and stacks it, which `x, y = batch` takes apart again. A subclass is made
anew, too, with the distributed sampler in the place of its own.

Fix: none in a release. Give the loader `sampler` and `batch_size`, or a batch sampler that splits the data between the
ranks itself and `use_distributed_sampler=False`.

Watch: there is no check for it yet: one would have to compare the loader that was given with the one that Lightning
makes of it.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import BatchSampler, DataLoader, TensorDataset, WeightedRandomSampler

X = torch.arange(16.0).view(16, 1)
DATA = TensorDataset(X, 2 * X)
WEIGHTS = [1.0] * 4 + [0.0] * 12  # only the samples 0 to 3 are to be drawn


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.batches = nn.Linear(1, 1), []

    def training_step(self, batch, batch_idx):
        x, y = batch
        self.batches.append(x.flatten().tolist())
        return mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class MyBatchSampler(BatchSampler):
    pass


def failing(sampler):
    return DataLoader(DATA, batch_sampler=BatchSampler(sampler, 4, False)), {}


def fixed(sampler):
    return DataLoader(DATA, sampler=sampler, batch_size=4), {}


def subclass(sampler):
    return DataLoader(DATA, batch_sampler=MyBatchSampler(sampler, 4, False)), {}


def unwrapped(sampler):
    return failing(sampler)[0], {"use_distributed_sampler": False}


VARIANTS = {v.__name__: v for v in (failing, fixed, subclass, unwrapped)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = Model()
    loader, options = VARIANTS[variant](WeightedRandomSampler(WEIGHTS, 16))
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=1, barebones=True, **options)
    trainer.fit(model, loader)
    number, size = len(model.batches), len(model.batches[0])
    highest = 3 if max(map(max, model.batches)) <= 3 else 15
    got = f"{number} batches of {size} out of 0 to {highest}"
    assert (number, size, highest) == (4, 4, 3), f"expected 4 batches of 4 samples out of 0 to 3, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
