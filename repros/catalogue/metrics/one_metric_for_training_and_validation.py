# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0103"
# title = "One metric for training and validation mixes the two"
# kind = "misuse"
# documented = "https://lightning.ai/docs/torchmetrics/stable/pages/overview.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/637",
#     "https://github.com/Lightning-AI/torchmetrics/issues/1450",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/11601",
#     "https://github.com/graviraja/MLOps-Basics/issues/16",
#     "https://github.com/atomistic-machine-learning/schnetpack/pull/456",
#     "https://github.com/ashleve/lightning-hydra-template/issues/239",
# ]
# packages = ["lightning"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "one BinaryAccuracy, logged by both steps"
# raises = "AssertionError"
# match = "expected accuracies 1.0 in training and 0.0 in validation, got 0.0 and 0.5"
#
# [tool.repro.variants.fixed]
# about = "a metric of its own for each step"
# source = "https://lightning.ai/docs/torchmetrics/stable/pages/overview.html"
#
# [tool.repro.variants.cloned_collection]
# outcome = "passes"
# about = "two clones of a MetricCollection, each with its prefix"
# source = "https://lightning.ai/docs/torchmetrics/stable/pages/overview.html#metriccollection"
#
# [tool.repro.variants.reset_before_validation]
# outcome = "fails"
# about = "reset() before each validation: the validation is right, and the training's batches are lost"
# raises = "AssertionError"
# match = "expected accuracies 1.0 in training and 0.0 in validation, got 0.0 and 0.0"
# claim = "one metric serves all stages if it is reset before validation starts"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/11601"
#
# [tool.repro.variants.shared_collections]
# outcome = "fails"
# about = "two MetricCollections with prefixes of their own, made from one metric"
# ///
"""A metric that training and validation share gives wrong values for both.

Symptom: the validation's accuracy is better than it should be early in a training, and the training's is that of a part
of the epoch, or 0. With one epoch for each validation the training's value is lost completely. Silent, but for a
warning that `compute` was called before `update`.

Cause: a metric sums up over all calls since its last reset. The validation runs inside the training's epoch, after its
last batch and before its end, so that its value includes the training's batches. At its end Lightning computes and
resets the logged metric, and nothing is left for the end of the training's epoch.

Fix: a metric for each stage and each data loader. `MetricCollection.clone(prefix=...)` makes copies; passing the same
metric objects to two collections does not.

Watch: no check sees it yet: one would have to follow which stages update a metric.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryAccuracy

RIGHT, WRONG = (torch.ones(2), torch.ones(2).int()), (torch.ones(2), torch.zeros(2).int())


class Model(LightningModule):
    """A model that is always right in training and always wrong in validation, with two samples in each."""

    def __init__(self, training, validation, resets=False):
        super().__init__()
        self.layer, self.resets = nn.Linear(1, 1), resets
        self.in_training, self.in_validation = training, validation

    def log_metric(self, name, metric):
        if isinstance(metric, MetricCollection):
            self.log_dict(metric, on_step=False, on_epoch=True)
        else:
            self.log(name, metric, on_step=False, on_epoch=True)

    def training_step(self, batch, batch_idx):
        self.in_training.update(*RIGHT)
        self.log_metric("train_accuracy", self.in_training)
        return self.layer(batch).mean()

    def on_validation_epoch_start(self):
        if self.resets:
            self.in_validation.reset()

    def validation_step(self, batch, batch_idx):
        self.in_validation.update(*WRONG)
        self.log_metric("val_accuracy", self.in_validation)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing():
    metric = BinaryAccuracy()
    return Model(metric, metric)


def fixed():
    return Model(BinaryAccuracy(), BinaryAccuracy())


def cloned_collection():
    collection = MetricCollection({"accuracy": BinaryAccuracy()})
    return Model(collection.clone(prefix="train_"), collection.clone(prefix="val_"))


def reset_before_validation():
    metric = BinaryAccuracy()
    return Model(metric, metric, resets=True)


def shared_collections():
    metrics = {"accuracy": BinaryAccuracy()}
    return Model(MetricCollection(metrics, prefix="train_"), MetricCollection(metrics, prefix="val_"))


VARIANTS = {v.__name__: v for v in (failing, fixed, cloned_collection, reset_before_validation, shared_collections)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    options = {"logger": False, "enable_checkpointing": False, "num_sanity_val_steps": 0, "max_epochs": 1}
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, **options)
    trainer.fit(VARIANTS[variant](), DataLoader(torch.ones(1, 1)), DataLoader(torch.ones(1, 1)))
    got = [trainer.callback_metrics[name].item() for name in ("train_accuracy", "val_accuracy")]
    assert got == [1.0, 0.0], f"expected accuracies 1.0 in training and 0.0 in validation, got {got[0]} and {got[1]}"


if __name__ == "__main__":
    main(*sys.argv[1:])
