# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0112"
# title = "self.log of a metric's value logs the mean of the batches' scores"
# kind = "misuse"
# documented = "https://lightning.ai/docs/torchmetrics/stable/pages/lightning.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/597",
#     "https://github.com/Lightning-AI/torchmetrics/issues/845",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/2265",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/4493",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19816",
#     "https://github.com/unit8co/darts/issues/2390",
# ]
# packages = ["lightning"]
# home = "2024-03"
# silent = true
# finds = ["score_logged_as_mean"]
#
# [tool.repro.variants.failing]
# about = "self.log of what the metric returns for the batch"
# raises = "AssertionError"
# match = "expected F1 0.8889 of all samples, got 0.5"
#
# [tool.repro.variants.fixed]
# about = "self.log of the metric object, which Lightning computes at the end of the epoch"
# source = "https://lightning.ai/docs/torchmetrics/stable/pages/lightning.html"
#
# [tool.repro.variants.at_the_end]
# outcome = "passes"
# about = "compute() at the end of the epoch, then reset()"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/597"
#
# [tool.repro.variants.running_value]
# outcome = "fails"
# about = "update() and self.log of compute() in each step: the mean of 1.0 and 0.8889"
# raises = "AssertionError"
# match = "expected F1 0.8889 of all samples, got 0.9444"
# finds = []
#
# [tool.repro.variants.larger_batch]
# outcome = "passes"
# contrast = true
# about = "all samples in one batch"
# ///
"""The F1 score of an epoch depends on the batch size.

Symptom: F1, precision, recall, AUROC or R2 that a LightningModule logs differ from those of the whole data, and change
with the batch size or the order of the samples. Silent.

Cause: calling a metric returns its value for this batch. `self.log` gets a number, and at the end of the epoch takes
the mean over the batches, weighted by their sizes. That is right for an accuracy over samples (`average="micro"`), and
not for scores that are no means over samples, as MulticlassAccuracy is not by default (`average="macro"`).

Fix: log the metric itself; Lightning then calls its `compute` at the end of the epoch, and resets it. Or compute and
reset it by hand in `on_validation_epoch_end`.

Watch: no check sees `running_value`: it logs what `compute` returned, as a right program may do at the end.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryF1Score

# The first batch of four has four true positives, F1 = 1. The second has one false positive and no other, F1 = 0. All:
# four true positives and one false: 2 * 4 / (2 * 4 + 1) = 0.8889.
PREDICTIONS, TARGETS = torch.tensor([1, 1, 1, 1, 1, 0, 0, 0]), torch.tensor([1, 1, 1, 1, 0, 0, 0, 0])


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.f1 = BinaryF1Score()

    def validation_step(self, batch, batch_idx):
        self.log("f1", self.f1(*batch))


def failing():
    return Model(), 4


class LogsTheMetric(Model):
    def validation_step(self, batch, batch_idx):
        self.f1(*batch)
        self.log("f1", self.f1)


def fixed():
    return LogsTheMetric(), 4


class ComputesAtTheEnd(Model):
    def validation_step(self, batch, batch_idx):
        self.f1.update(*batch)

    def on_validation_epoch_end(self):
        self.log("f1", self.f1.compute())
        self.f1.reset()


def at_the_end():
    return ComputesAtTheEnd(), 4


class LogsRunningValue(Model):
    def validation_step(self, batch, batch_idx):
        self.f1.update(*batch)
        self.log("f1", self.f1.compute())


def running_value():
    return LogsRunningValue(), 4


def larger_batch():
    return Model(), 8


VARIANTS = {v.__name__: v for v in (failing, fixed, at_the_end, running_value, larger_batch)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, batch_size = VARIANTS[variant]()
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, logger=False, enable_checkpointing=False)
    loader = DataLoader(TensorDataset(PREDICTIONS, TARGETS), batch_size=batch_size)
    [logged] = trainer.validate(model, loader, verbose=False)
    got = round(logged["f1"], 4)
    assert got == 0.8889, f"expected F1 0.8889 of all samples, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
