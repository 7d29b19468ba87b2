# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0127"
# title = "OneCycleLR steps once per epoch and never leaves its warm-up"
# kind = "misuse"
# documented = "https://lightning.ai/docs/pytorch/stable/common/lightning_module.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/65417",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/5631",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/6948",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/3869",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/4466",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/11599",
# ]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
# finds = ["schedule_unfinished"]
#
# [tool.repro.variants.failing]
# about = "return [optimizer], [OneCycleLR(total_steps=estimated_stepping_batches)], the example of that property"
# claim = "total_steps=self.trainer.estimated_stepping_batches; return [optimizer], [scheduler]"
# source = "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.trainer.trainer.Trainer.html"
# raises = "AssertionError"
# match = "the highest learning rate: expected max_lr = 1.0, got 0.2057"
#
# [tool.repro.variants.fixed]
# about = "the scheduler in a dictionary with interval step"
# source = "https://lightning.ai/docs/pytorch/stable/common/lightning_module.html"
#
# [tool.repro.variants.interval_beside]
# outcome = "fails"
# about = "interval step beside lr_scheduler, not in it: ignored, with a warning that names an unsupported key"
# claim = "interval step in what configure_optimizers returns makes the scheduler step with each batch"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/6948"
#
# [tool.repro.variants.estimated_by_hand]
# outcome = "fails"
# about = "steps_per_epoch and epochs instead of total_steps: the same number of steps, of which one in ten is taken"
# ///
"""A learning rate schedule that counts batches is stepped at the end of each epoch.

Symptom: the learning rate creeps up from its first value and the run ends early in the warm-up; the highest rate is
never reached. Silent.

Cause: the unit of a scheduler is the epoch unless its dictionary says otherwise. `OneCycleLR`, which is made for as
many steps as there are batches, is stepped once per epoch. The example in the documentation of
`Trainer.estimated_stepping_batches`, still in Lightning 2.6.6, returns the bare scheduler.

Fix: `{"scheduler": scheduler, "interval": "step"}` under `lr_scheduler`.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader

EPOCHS, BATCHES = 4, 10
# OneCycleLR begins at max_lr / 25 = 0.04 and rises along a half cosine for 30 % of its 40 steps, from step 0 to 11.
# In four epochs it is stepped three times: 0.04 + 0.96 * (1 - cos(3 / 11 * pi)) / 2 = 0.2057.


class Model(LightningModule):
    def __init__(self, configure):
        super().__init__()
        self.layer, self.configure, self.rates = nn.Linear(1, 1), configure, []

    def training_step(self, batch, batch_idx):
        self.rates.append(self.optimizers().param_groups[0]["lr"])
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return self.configure(torch.optim.SGD(self.parameters(), 0.01), self.trainer)


def failing(optimizer, trainer):
    scheduler = OneCycleLR(optimizer, max_lr=1.0, total_steps=trainer.estimated_stepping_batches)
    return [optimizer], [scheduler]


def fixed(optimizer, trainer):
    scheduler = OneCycleLR(optimizer, max_lr=1.0, total_steps=trainer.estimated_stepping_batches)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def interval_beside(optimizer, trainer):
    scheduler = OneCycleLR(optimizer, max_lr=1.0, total_steps=trainer.estimated_stepping_batches)
    return {"optimizer": optimizer, "lr_scheduler": scheduler, "interval": "step"}


def estimated_by_hand(optimizer, trainer):
    return [optimizer], [OneCycleLR(optimizer, max_lr=1.0, epochs=EPOCHS, steps_per_epoch=BATCHES)]


VARIANTS = {v.__name__: v for v in (failing, fixed, interval_beside, estimated_by_hand)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = Model(VARIANTS[variant])
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=EPOCHS, barebones=True)
    trainer.fit(model, DataLoader(torch.ones(BATCHES, 1)))
    highest = round(max(model.rates), 4)
    assert highest == 1.0, f"the highest learning rate: expected max_lr = 1.0, got {highest}"


if __name__ == "__main__":
    main(*sys.argv[1:])
