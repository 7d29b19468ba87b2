# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0009"
# title = "A validation between accumulated batches erases their gradients"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/18713"]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/18710"]
# packages = ["lightning"]
# affected = ["lightning<2.1"]
# home = "2023-05"
# silent = true
# finds = ["gradients_erased"]
#
# [tool.repro.variants.failing]
# about = "validate after every batch, step after every second"
# raises = "AssertionError"
# match = "expected gradient 2.0, the mean of 1 and 3, got 1.5"
#
# [tool.repro.variants.fixed]
# about = "validate where the optimizer has just stepped: val_check_interval a multiple of accumulate_grad_batches"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/18713"
# ///
"""A validation in the middle of an accumulation throws away the gradients gathered so far.

Symptom: with `accumulate_grad_batches` and a `val_check_interval` that is not a multiple of it, batches before a
validation do not count. The optimizer steps with the rest of the gradient. Silent.

Cause: `_EvaluationLoop.on_run_start` called `lightning_module.zero_grad()` before each validation, including
validations in the middle of an epoch.

Fix: Lightning 2.1 leaves the gradients alone. Before: validate only where the optimizer has stepped.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    """A model with output w * x: the gradient of w is x, 1 for the first batch and 3 for the second."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        self.layer(batch)

    def on_before_optimizer_step(self, optimizer):
        got = self.layer.weight.grad.item()
        assert got == 2.0, f"expected gradient 2.0, the mean of 1 and 3, got {got}"

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing():
    return {"accumulate_grad_batches": 2, "val_check_interval": 1}


def fixed():
    return {"accumulate_grad_batches": 2, "val_check_interval": 2}


VARIANTS = {v.__name__: v for v in (failing, fixed)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    options = {"accelerator": accelerator, "strategy": strategy, "devices": 1, "max_epochs": 1, "barebones": True}
    trainer = Trainer(**options, **VARIANTS[variant]())
    trainer.fit(Model(), DataLoader(torch.tensor([[1.0], [3.0]] * 2)), DataLoader(torch.ones(1, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
