# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0104"
# title = "A monitored value that is not synchronised gives each rank its own learning rate"
# kind = "misuse"
# documented = "https://lightning.ai/docs/pytorch/stable/accelerators/accelerator_prepare.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/3597",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/4223",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/4319",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19045",
#     "https://github.com/rmchurch/disruptcnn/issues/3",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20141",
# ]
# packages = ["lightning"]
# home = "2026-07"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "ReduceLROnPlateau monitors a value that each rank logs for itself"
# raises = "AssertionError"
# match = "expected the weights [-4.0, -4.0], equal on both ranks, got [-4.0, -2.11]"
#
# [tool.repro.variants.fixed]
# about = "self.log(..., sync_dist=True)"
# source = "https://lightning.ai/docs/pytorch/stable/accelerators/accelerator_prepare.html"
#
# [tool.repro.variants.metric]
# outcome = "passes"
# about = "a torchmetrics metric is logged, which synchronises itself"
# source = "https://lightning.ai/docs/pytorch/stable/accelerators/accelerator_prepare.html"
# ///
"""Ranks whose schedulers, checkpoints or early stopping look at their own validation loss go different ways.

Symptom: under DDP the ranks' weights differ although all gradients are reduced. With `ModelCheckpoint` the ranks name
different files as the best, of which rank 0's exists, and one is written only where all ranks see their best. With
`EarlyStopping` all stop as soon as one rank wants to. A warning recommends `sync_dist=True` once; there is no error.

Cause: `self.log` keeps a rank's own value unless it is told to reduce it, and `ReduceLROnPlateau` on each rank steps
with that. The learning rates differ from then on, and the same gradients make different steps.

Fix: `sync_dist=True`, or log a metric object.

Watch: `parameters_differ` finds it, whatever the cause is, and so cannot name it.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader
from torchmetrics import MeanMetric

VALUES = [
    [8.0, 6.0, 4.0, 2.0],
    [1.0, 1.0, 1.0, 1.0],
]  # by rank and epoch: better in each epoch on rank 0 and in the mean


class Model(LightningModule):
    """The gradient is 1 on both ranks: four steps with learning rate 1; on rank 1 alone 1, 1, 0.1, 0.01."""

    def __init__(self, sync_dist=False):
        super().__init__()
        self.layer, self.sync_dist, self.mean = nn.Linear(1, 1, bias=False), sync_dist, MeanMetric()
        nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        self.log("val", VALUES[self.global_rank][self.current_epoch], sync_dist=self.sync_dist)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
        return {"optimizer": optimizer, "lr_scheduler": ReduceLROnPlateau(optimizer, patience=0), "monitor": "val"}


class ModelWithMetric(Model):
    def validation_step(self, batch, batch_idx):
        self.mean.update(VALUES[self.global_rank][self.current_epoch])
        self.log("val", self.mean)


def failing():
    return Model()


def fixed():
    return Model(sync_dist=True)


def metric():
    return ModelWithMetric()


VARIANTS = {v.__name__: v for v in (failing, fixed, metric)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = VARIANTS[variant]()
    loader, options = DataLoader(torch.ones(2, 1)), {"logger": False, "enable_checkpointing": False}
    trainer = Trainer(
        accelerator=accelerator, strategy=strategy, devices=2, max_epochs=4, num_sanity_val_steps=0, **options
    )
    trainer.fit(model, loader, loader)
    got = [round(weight, 3) for weight in trainer.strategy.all_gather(model.layer.weight.detach()).flatten().tolist()]
    assert got == [-4.0, -4.0], f"expected the weights [-4.0, -4.0], equal on both ranks, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
