# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0109"
# title = "A metric that is computed by hand is never reset by Lightning"
# kind = "misuse"
# documented = "https://lightning.ai/docs/torchmetrics/stable/pages/lightning.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/269",
#     "https://github.com/Lightning-AI/torchmetrics/issues/811",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/4396",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/6201",
#     "https://github.com/haven-jeon/KoGPT2-subtasks/pull/1",
# ]
# packages = ["lightning"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "self.log of compute() at the end of each validation"
# raises = "AssertionError"
# match = "expected accuracies 0.0 and 1.0 of two epochs, got 0.0 and 0.5"
# claim = "The .reset() method of the metric will automatically be called at the end of an epoch."
# source = "https://lightning.ai/docs/torchmetrics/stable/pages/lightning.html"
#
# [tool.repro.variants.fixed]
# about = "reset() after compute()"
# source = "https://lightning.ai/docs/torchmetrics/stable/pages/lightning.html"
#
# [tool.repro.variants.logged_object]
# outcome = "passes"
# about = "self.log of the metric itself, which Lightning computes and resets"
# source = "https://lightning.ai/docs/torchmetrics/stable/pages/lightning.html"
#
# [tool.repro.variants.logged_value]
# outcome = "fails"
# about = "the value is logged in each step as well, which gives Lightning a number and not the metric"
# ///
"""The metric of a validation is that of all validations so far.

Symptom: the accuracy of each epoch includes those before and the batches of the sanity check, so that the best epoch is
found late or not at all. Silent.

Cause: Lightning resets the metrics that `self.log` got as objects. A metric whose `compute()` is called by hand, and
whose value alone is logged, is not known to it, and `compute()` does not reset.

Fix: call `reset()` after `compute()`, or log the metric object.

Watch: no check tells it from a healthy training, since a metric over all epochs may be meant.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader
from torchmetrics.classification import BinaryAccuracy


class Model(LightningModule):
    """A model that is wrong in epoch 0 and right in epoch 1."""

    def __init__(self):
        super().__init__()
        self.layer, self.accuracy, self.seen = nn.Linear(1, 1), BinaryAccuracy(), []

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        self.accuracy.update(torch.tensor([self.current_epoch]), torch.tensor([1]))

    def on_validation_epoch_end(self):
        self.log("accuracy", self.accuracy.compute())

    def on_train_epoch_end(self):  # after the validation
        self.seen.append(self.trainer.callback_metrics["accuracy"].item())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing():
    return Model()


class Resets(Model):
    def on_validation_epoch_end(self):
        super().on_validation_epoch_end()
        self.accuracy.reset()


def fixed():
    return Resets()


class LogsTheMetric(Model):
    def validation_step(self, batch, batch_idx):
        super().validation_step(batch, batch_idx)
        self.log("accuracy", self.accuracy)

    def on_validation_epoch_end(self):
        pass


def logged_object():
    return LogsTheMetric()


class LogsTheValue(Model):
    def validation_step(self, batch, batch_idx):
        self.log("of_the_batch", self.accuracy(torch.tensor([self.current_epoch]), torch.tensor([1])))


def logged_value():
    return LogsTheValue()


VARIANTS = {v.__name__: v for v in (failing, fixed, logged_object, logged_value)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    options = {"logger": False, "enable_checkpointing": False, "num_sanity_val_steps": 0, "max_epochs": 2}
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, **options)
    model = VARIANTS[variant]()
    trainer.fit(model, DataLoader(torch.ones(1, 1)), DataLoader(torch.ones(1, 1)))
    first, second = model.seen
    assert (first, second) == (0.0, 1.0), f"expected accuracies 0.0 and 1.0 of two epochs, got {first} and {second}"


if __name__ == "__main__":
    main(*sys.argv[1:])
