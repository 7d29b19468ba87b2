# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0113"
# title = "A new learning rate is ignored when a fit resumes from a checkpoint"
# kind = "by design"
# documented = "https://lightning.ai/docs/pytorch/stable/common/checkpointing_basic.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/4044",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/12118",
#     "https://github.com/alex-hh/profam/pull/483",
# ]
# upstream.related = ["https://github.com/pytorch/examples/issues/816"]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "Model(lr=0.5) and fit(ckpt_path=...) of a run with lr=1.0"
# raises = "AssertionError"
# match = "the weight after a step with 1.0 and one with 0.5: expected -1.5, got -2.0"
#
# [tool.repro.variants.fixed]
# about = "the rate is written into the checkpoint's optimizer states in on_load_checkpoint"
# source = "https://github.com/alex-hh/profam/pull/483"
#
# [tool.repro.variants.on_train_start]
# outcome = "passes"
# about = "the rate is set on the optimizer in on_train_start, after the states are restored"
#
# [tool.repro.variants.on_fit_start]
# outcome = "fails"
# about = "the same in on_fit_start, before the states are restored"
# ///
"""A run that resumes with a lower learning rate goes on with the old one.

Symptom: the learning rate given to the model of the resumed run has no effect. Silent.

Cause: `fit(ckpt_path=...)` restores the state of each optimizer after `configure_optimizers`, and the learning rate is a
part of that state, as everything in an optimizer's groups.

Fix: change it in the checkpoint in `on_load_checkpoint`, or on the optimizer in `on_train_start`. A scheduler that is
restored, too, computes further rates from its own `base_lrs`.

Apart: the same in plain PyTorch is RPR-0083.

Watch: no check tells it from a healthy resume, since most resumes want the settings of the checkpoint.
"""

import os
import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    """The weight begins at 0, and each epoch has one step with gradient 1."""

    def __init__(self, lr):
        super().__init__()
        self.layer, self.lr = nn.Linear(1, 1, bias=False), lr
        nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def set_rate(self):
        self.trainer.optimizers[0].param_groups[0]["lr"] = self.lr

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


class Failing(Model):
    pass


class Fixed(Model):
    def on_load_checkpoint(self, checkpoint):
        checkpoint["optimizer_states"][0]["param_groups"][0]["lr"] = self.lr


class OnTrainStart(Model):
    def on_train_start(self):
        self.set_rate()


class OnFitStart(Model):
    def on_fit_start(self):
        if self.trainer.optimizers:
            self.set_rate()


VARIANTS = {"failing": Failing, "fixed": Fixed, "on_train_start": OnTrainStart, "on_fit_start": OnFitStart}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    loader, model = DataLoader(torch.ones(1, 1)), VARIANTS[variant](lr=0.5)
    options = {"accelerator": accelerator, "strategy": strategy, "devices": 1, "barebones": True}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "epoch.ckpt")
        first = Trainer(max_epochs=1, **options)
        first.fit(VARIANTS[variant](lr=1.0), loader)
        first.save_checkpoint(path)
        Trainer(max_epochs=2, **options).fit(model, loader, ckpt_path=path)
    got = model.layer.weight.item()
    assert got == -1.5, f"the weight after a step with 1.0 and one with 0.5: expected -1.5, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
