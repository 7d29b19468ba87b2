# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0108"
# title = "The backbone that BackboneFinetuning unfreezes is never reduced under DDP"
# kind = "limitation"
# documented = "https://github.com/Lightning-AI/pytorch-lightning/issues/20340"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20340",
#     "https://github.com/paninski-lab/lightning-pose/pull/205",
# ]
# packages = ["lightning"]
# home = "2026-07"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["gradients_differ_unfrozen"]
#
# [tool.repro.variants.failing]
# about = "BackboneFinetuning that unfreezes in epoch 1"
# raises = "AssertionError"
# match = [
#     "the backbone after three epochs: expected -4.0, by gradients of 2, the mean of 1 and 3, got -2.0",
#     "the backbone after three epochs: expected -4.0, by gradients of 2, the mean of 1 and 3, got -6.0",
# ]
#
# [tool.repro.variants.fixed]
# about = "the backbone always requires gradients, and has the learning rate 0 until it is to be trained"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/20340"
#
# [tool.repro.variants.find_unused]
# outcome = "fails"
# about = "ddp_find_unused_parameters_true, which looks among the parameters that were there to be reduced"
# ///
"""A fine-tuning on several GPUs trains a backbone for each rank from the epoch in which it is unfrozen.

Symptom: from `unfreeze_backbone_at_epoch` on the ranks' backbones drift apart, each trained on its own share of the
data; what is saved is rank 0's. Silent.

Cause: `BackboneFinetuning` freezes the backbone in `setup`, before the model is wrapped. DDP reduces the parameters that
required gradients when it wrapped the model, and Lightning does not wrap again after the callback has unfrozen others.

Fix: none in a release. Leave `requires_grad` as it is, and hold the backbone by its learning rate.

Apart: the same in plain PyTorch is RPR-0077.
"""

import sys

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import BackboneFinetuning
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    """Backbone and head have the gradient x, which is 1 on rank 0 and 3 on rank 1; the backbone begins at 0."""

    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.backbone.weight)

    def training_step(self, batch, batch_idx):
        x = batch * (1 + 2 * self.global_rank)
        return (self.backbone(x) + self.head(x)).mean()

    def configure_optimizers(self):
        return torch.optim.SGD([p for p in self.parameters() if p.requires_grad], lr=1.0)


class HeldModel(Model):
    def configure_optimizers(self):
        held = {"params": self.backbone.parameters(), "lr": 0.0}
        return torch.optim.SGD([{"params": self.head.parameters()}, held], lr=1.0)


class Release(Callback):
    def on_train_epoch_start(self, trainer, pl_module):
        trainer.optimizers[0].param_groups[1]["lr"] = 1.0 if trainer.current_epoch >= 1 else 0.0


def finetuning():
    return BackboneFinetuning(1, lambda_func=lambda epoch: 1.0, backbone_initial_lr=1.0)


def failing(strategy):
    return Model(), finetuning(), strategy


def fixed(strategy):
    return HeldModel(), Release(), strategy


def find_unused(strategy):
    return Model(), finetuning(), "ddp_find_unused_parameters_true"


VARIANTS = {v.__name__: v for v in (failing, fixed, find_unused)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, callback, strategy = VARIANTS[variant](strategy)
    options = {"max_epochs": 3, "logger": False, "enable_checkpointing": False, "callbacks": [callback]}
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=2, **options)
    trainer.fit(model, DataLoader(torch.ones(2, 1)))
    got = model.backbone.weight.item()  # trained in the epochs 1 and 2, with learning rate 1
    expected = "the backbone after three epochs: expected -4.0, by gradients of 2, the mean of 1 and 3"
    assert got == -4.0, f"{expected}, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
