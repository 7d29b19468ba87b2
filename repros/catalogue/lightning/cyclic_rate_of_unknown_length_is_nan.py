# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0102"
# title = "CyclicLR with trainer.num_training_batches makes the weights NaN"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/16060",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/5449",
# ]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "CyclicLR(step_size_up=self.trainer.num_training_batches) in configure_optimizers"
# raises = "AssertionError"
# match = "the learning rate of the second batch: expected 0.325, got nan"
#
# [tool.repro.variants.fixed]
# about = "trainer.estimated_stepping_batches, which loads the data to count it"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/11599"
#
# [tool.repro.variants.counted_by_hand]
# outcome = "passes"
# about = "the length of the loader"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/5449"
# ///
"""A schedule that asks the Trainer for the number of batches gets infinity, and trains nothing but NaN.

Symptom: the loss is NaN from the second batch on. Nothing is raised or warned.

Cause: `configure_optimizers` runs before the training data is loaded, and until then `trainer.num_training_batches` is
`float("inf")`. `CyclicLR` computes its scale as infinity divided by infinity; the learning rate is NaN from the
scheduler's first step, in its constructor, and with the first step of the optimizer so are all weights.

Fix: `trainer.estimated_stepping_batches`, or the length of one's own loader.

Watch: `weights_not_finite` finds it, whatever the cause is, and so cannot name it.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.optim.lr_scheduler import CyclicLR
from torch.utils.data import DataLoader

BATCHES = 4
# CyclicLR rises linearly from base_lr to max_lr in step_size_up steps: from 0.1 by (1.0 - 0.1) / 4 = 0.225 in each.


class Model(LightningModule):
    def __init__(self, loader, count):
        super().__init__()
        self.layer, self.loader, self.count, self.rates = nn.Linear(1, 1), loader, count, []

    def training_step(self, batch, batch_idx):
        self.rates.append(round(self.optimizers().param_groups[0]["lr"], 3))
        return self.layer(batch).mean()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), 0.1)
        up = self.count(self.trainer, self.loader)
        scheduler = CyclicLR(optimizer, base_lr=0.1, max_lr=1.0, step_size_up=up, cycle_momentum=False)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


def failing(trainer, loader):
    return trainer.num_training_batches


def fixed(trainer, loader):
    return trainer.estimated_stepping_batches // trainer.max_epochs


def counted_by_hand(trainer, loader):
    return len(loader)


VARIANTS = {v.__name__: v for v in (failing, fixed, counted_by_hand)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    loader = DataLoader(torch.ones(BATCHES, 1))
    model = Model(loader, VARIANTS[variant])
    Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=1, barebones=True).fit(model, loader)
    got = model.rates[1]
    assert got == 0.325, f"the learning rate of the second batch: expected 0.325, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
