# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0111"
# title = "sync_dist logs too much where ranks have uneven numbers of samples"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21838",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21859",
# ]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21839"]
# packages = ["lightning"]
# home = "2026-07"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "two samples on rank 0 and one on rank 1, each with the score 1"
# raises = "AssertionError"
# match = "expected the mean 1.0 of three scores of 1.0, got 1.5"
#
# [tool.repro.variants.fixed]
# about = "a MeanMetric with the batch sizes as weights, logged as an object"
#
# [tool.repro.variants.as_sums]
# outcome = "passes"
# about = "the sum and the number logged with reduce_fx='sum', and divided afterwards"
#
# [tool.repro.variants.batch_size]
# outcome = "fails"
# about = "batch_size= names the same number"
# claim = "the right batch_size gives the right mean"
# source = "https://lightning.ai/docs/pytorch/stable/extensions/logging.html"
#
# [tool.repro.variants.even]
# outcome = "passes"
# contrast = true
# about = "one sample on each rank"
# ///
"""A mean over the samples of all ranks comes out above all of them.

Symptom: the epoch's loss or accuracy on several devices is too large by up to a factor of two, for data sets whose
length is not a multiple of the number of ranks, with iterable data sets or samplers that do not repeat samples.
Silent.

Cause: `_ResultMetric.compute` reduces the sum of values and the number of samples to their means over the ranks, and
divides one by the other. The number is an integer tensor, which cannot hold a mean of 1.5: it is rounded down.

Fix: none in a release. Log a metric object, such as `MeanMetric`, which sums both, or sums of one's own.

Watch: no check sees it yet: one would have to compare the numbers of samples that the ranks log.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, IterableDataset
from torchmetrics import MeanMetric


class Uneven(IterableDataset):
    """Two samples on rank 0 and one on rank 1, or one on each."""

    def __init__(self, even):
        self.even, self.rank = even, 0

    def __iter__(self):
        return iter(torch.ones(1 if self.even or self.rank else 2))


class Model(LightningModule):
    def __init__(self, data):
        super().__init__()
        self.data, self.mean = data, MeanMetric()

    def setup(self, stage):
        self.data.rank = self.global_rank

    def val_dataloader(self):
        return DataLoader(self.data, batch_size=2)  # so one batch on each rank

    def validation_step(self, batch, batch_idx):
        # Sums 2 and 1 of numbers 2 and 1: 1.5 / 1.5 = 1. Rounded down, 1.5 / 1 = 1.5.
        self.log("score", batch.mean(), sync_dist=True)

    def score(self, logged):
        return logged["score"]


def failing():
    return Model(Uneven(even=False))


class LogsTheMetric(Model):
    def validation_step(self, batch, batch_idx):
        self.mean.update(batch.mean(), weight=len(batch))
        self.log("score", self.mean)


def fixed():
    return LogsTheMetric(Uneven(even=False))


class LogsSums(Model):
    def validation_step(self, batch, batch_idx):
        options = {"sync_dist": True, "reduce_fx": "sum"}
        self.log("total", batch.sum(), **options)
        self.log("number", float(len(batch)), **options)

    def score(self, logged):
        return logged["total"] / logged["number"]


def as_sums():
    return LogsSums(Uneven(even=False))


class NamesBatchSize(Model):
    def validation_step(self, batch, batch_idx):
        self.log("score", batch.mean(), sync_dist=True, batch_size=len(batch))


def batch_size():
    return NamesBatchSize(Uneven(even=False))


def even():
    return Model(Uneven(even=True))


VARIANTS = {v.__name__: v for v in (failing, fixed, as_sums, batch_size, even)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = VARIANTS[variant]()
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=2, logger=False)
    [logged] = trainer.validate(model, verbose=False)
    got = model.score(logged)
    assert got == 1.0, f"expected the mean 1.0 of three scores of 1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
