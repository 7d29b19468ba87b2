# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0", "pytorch-lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0101"
# title = "ckpt_path='best' is the last weights with pytorch_lightning's ModelCheckpoint"
# kind = "bug"
# upstream.reports = []
# upstream.introduced_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21192"]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/17485",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/17048",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/12501",
# ]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "pytorch_lightning's ModelCheckpoint in a Trainer of lightning.pytorch"
# requires = ["lightning>=2.6"]
# raises = "AssertionError"
# match = "the weight that is tested as the best: expected -2.0, of epoch 1, got -5.0"
#
# [tool.repro.variants.fixed]
# about = "ModelCheckpoint and Trainer of lightning.pytorch"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/17048"
#
# [tool.repro.variants.by_path]
# outcome = "passes"
# about = "ckpt_path=checkpoint.best_model_path instead of 'best'"
# requires = ["lightning>=2.6"]
#
# [tool.repro.variants.refused]
# outcome = "fails"
# about = "the same in the releases from 2.1 to 2.5, whose Trainer refuses the callback"
# requires = ["lightning>=2.1,<2.6"]
# raises = "TypeError"
# match = "Please switch to a single import style"
# ///
"""With imports of both `lightning.pytorch` and `pytorch_lightning`, "best" is not the best checkpoint.

Symptom: `trainer.test(ckpt_path="best")` after a fit tests the weights of the last epoch, although the `ModelCheckpoint`
that was given has kept the best ones and monitors the right value. Silent.

Cause: `lightning.pytorch` and `pytorch_lightning` are two copies of one code. A callback of the other copy is called,
but is no instance of this copy's `ModelCheckpoint`, so the Trainer adds one of its own, which monitors nothing and keeps
the last epoch; "best" asks that one. Up to Lightning 2.5.6 the Trainer refuses the callback (2.0 with a ValueError). From 2.6.0
`_validate_callbacks_list` hands `parent=Callback` to `is_overridden`, which looks for mixed imports only without it.

Fix: import everything from one of the two.

Watch: no check sees `failing`, since which weights a test is meant for is known to the program alone.
"""

import sys
import tempfile

import pytorch_lightning
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader

LOSSES = [3.0, 1.0, 5.0, 6.0, 7.0]  # by epoch


class Model(LightningModule):
    """The weight begins at 0, and each epoch takes 1 from it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        self.log("val", LOSSES[self.current_epoch])

    def test_step(self, batch, batch_idx):
        self.tested = self.layer.weight.item()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


def failing(folder):
    return pytorch_lightning.callbacks.ModelCheckpoint(folder, monitor="val")


def fixed(folder):
    return ModelCheckpoint(folder, monitor="val")


def by_path(folder):
    return failing(folder)


def refused(folder):
    return failing(folder)


VARIANTS = {v.__name__: v for v in (failing, fixed, by_path, refused)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, loader = Model(), DataLoader(torch.ones(1, 1))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = VARIANTS[variant](folder)
        options = {"max_epochs": 5, "logger": False, "num_sanity_val_steps": 0, "default_root_dir": folder}
        trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, callbacks=[checkpoint], **options)
        trainer.fit(model, loader, loader)
        trainer.test(model, loader, ckpt_path=checkpoint.best_model_path if variant == "by_path" else "best")
    got = model.tested
    assert got == -2.0, f"the weight that is tested as the best: expected -2.0, of epoch 1, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
