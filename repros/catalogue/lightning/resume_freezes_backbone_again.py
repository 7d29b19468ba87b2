# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0105"
# title = "Resuming a BackboneFinetuning run freezes the backbone again"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21901",
#     "https://github.com/luxonis/luxonis-train/pull/358",
# ]
# upstream.unreleased_fix = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21902"]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/8502",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/6891",
# ]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "resume in epoch 2 a run that unfroze its backbone in epoch 1"
# raises = "AssertionError"
# match = "the backbone after three epochs: expected -2.0, got -1.0"
#
# [tool.repro.variants.fixed]
# about = "a subclass that makes the backbone trainable in on_train_start, when the epoch is known"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/21901"
#
# [tool.repro.variants.in_on_fit_start]
# outcome = "fails"
# about = "the same in on_fit_start, where the restored epoch is not set yet"
#
# [tool.repro.variants.uninterrupted]
# outcome = "passes"
# contrast = true
# about = "the three epochs in one fit"
# ///
"""A fine-tuning that goes on from a checkpoint trains only the head, although the backbone was unfrozen before.

Symptom: after a resume the backbone's weights do not change any more. Its parameters are still in the optimizer, with
a learning rate that is logged. Silent.

Cause: `BaseFinetuning.setup` freezes the backbone, on a resumed run, too. `on_fit_start` restores the optimizer's
groups from the checkpoint, but not `requires_grad`; and `BackboneFinetuning.finetune_function` unfreezes only in
exactly the epoch `unfreeze_backbone_at_epoch`, which is over.

Fix: none in a release. Make the backbone trainable again in `on_train_start`.

Watch: there is no check for it yet: one would have to know from the checkpoint what was trained before.
"""

import os
import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import BackboneFinetuning
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    """Each step takes 1 from the backbone's weight, which begins at 0, in each epoch in which it is trained: 1 and 2."""

    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.backbone.weight)

    def training_step(self, batch, batch_idx):
        return (self.backbone(batch) + self.head(batch)).mean()

    def configure_optimizers(self):
        return torch.optim.SGD([p for p in self.parameters() if p.requires_grad], lr=1.0)


class Unfreezing(BackboneFinetuning):
    def on_train_start(self, trainer, pl_module):
        if trainer.current_epoch > self.unfreeze_backbone_at_epoch:
            self.make_trainable(pl_module.backbone)


class UnfreezingEarly(BackboneFinetuning):
    def on_fit_start(self, trainer, pl_module):
        super().on_fit_start(trainer, pl_module)
        if trainer.current_epoch > self.unfreeze_backbone_at_epoch:
            self.make_trainable(pl_module.backbone)


def failing(train, path, callback=BackboneFinetuning):
    train(2, callback).save_checkpoint(path)
    return train(3, callback, ckpt_path=path)


def fixed(train, path):
    return failing(train, path, Unfreezing)


def in_on_fit_start(train, path):
    return failing(train, path, UnfreezingEarly)


def uninterrupted(train, path):
    return train(3, BackboneFinetuning)


VARIANTS = {v.__name__: v for v in (failing, fixed, in_on_fit_start, uninterrupted)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")

    def train(epochs, callback, ckpt_path=None):
        finetuning = callback(1, lambda_func=lambda epoch: 1.0, backbone_initial_lr=1.0)
        options = {"max_epochs": epochs, "logger": False, "enable_checkpointing": False, "callbacks": [finetuning]}
        trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, **options)
        trainer.fit(Model(), DataLoader(torch.ones(1, 1)), ckpt_path=ckpt_path)
        return trainer

    with tempfile.TemporaryDirectory() as folder:
        trainer = VARIANTS[variant](train, os.path.join(folder, "epoch.ckpt"))
    got = trainer.lightning_module.backbone.weight.item()
    assert got == -2.0, f"the backbone after three epochs: expected -2.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
