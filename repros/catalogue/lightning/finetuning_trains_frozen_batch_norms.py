# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0129"
# title = "BackboneFinetuning(train_bn=False) trains the frozen backbone's batch norms"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/13902",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/14277",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20629",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21531",
# ]
# upstream.unreleased_fix = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21652"]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/issues/15062"]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "BackboneFinetuning(train_bn=False) while the backbone is frozen"
# claim = "train_bn: whether to make batch normalization trainable"
# source = "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.BackboneFinetuning.html"
# raises = "AssertionError"
# match = "the frozen batch norm: expected bias 0.0 and running mean 0.0, got -1.0 and 2.0"
#
# [tool.repro.variants.fixed]
# about = "a subclass whose freeze_before_training hands train_bn on"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/13902"
#
# [tool.repro.variants.frozen_by_hand]
# outcome = "fails"
# about = "requires_grad_(False) on the backbone before the fit: the callback makes its batch norms trainable again"
# ///
"""BackboneFinetuning leaves the batch norms of a frozen backbone trainable, whatever `train_bn` says.

Symptom: weights, biases and running statistics of the backbone's batch norms change from the first epoch on, while the
rest of the backbone is frozen; `train_bn=True` and `train_bn=False` train alike until the backbone is unfrozen. Silent.

Cause: `BackboneFinetuning.freeze_before_training` calls `self.freeze(pl_module.backbone)`. The default of `freeze` is
`train_bn=True`, which makes batch norms trainable even if they were frozen before. Only the unfreezing hands the
argument on.

Fix: none in a release. Override `freeze_before_training`.

Watch: no check tells it from a healthy training, since batch norms of a frozen backbone are trained on purpose, too.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import BackboneFinetuning
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    """A batch norm and a head with weight 1: the bias has the gradient 1, and the running mean is the batch's, 2."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.BatchNorm1d(1, momentum=1.0))
        self.head = nn.Linear(1, 1, bias=False)
        nn.init.ones_(self.head.weight)

    def training_step(self, batch, batch_idx):
        return self.head(self.backbone(batch)).mean()

    def configure_optimizers(self):
        return torch.optim.SGD([p for p in self.parameters() if p.requires_grad], lr=1.0)


class HandingOn(BackboneFinetuning):
    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.backbone, train_bn=self.train_bn)


def failing():
    return Model(), BackboneFinetuning(train_bn=False)


def fixed():
    return Model(), HandingOn(train_bn=False)


def frozen_by_hand():
    model = Model()
    model.backbone.requires_grad_(False)
    return model, BackboneFinetuning(train_bn=False)


VARIANTS = {v.__name__: v for v in (failing, fixed, frozen_by_hand)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, callback = VARIANTS[variant]()
    options = {"logger": False, "enable_checkpointing": False, "max_epochs": 1}  # it unfreezes in epoch 10
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, callbacks=[callback], **options)
    trainer.fit(model, DataLoader(torch.tensor([[1.0], [3.0]]), batch_size=2))
    bias, mean = model.backbone[0].bias.item(), model.backbone[0].running_mean.item()
    expected = "the frozen batch norm: expected bias 0.0 and running mean 0.0"
    assert (bias, mean) == (0.0, 0.0), f"{expected}, got {bias} and {mean}"


if __name__ == "__main__":
    main(*sys.argv[1:])
