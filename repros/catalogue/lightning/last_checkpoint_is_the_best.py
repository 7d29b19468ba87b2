# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0119"
# title = "save_last=True keeps the last best checkpoint, not the last one"
# kind = "by design"
# documented = "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.ModelCheckpoint.html"
# upstream.reports = [
#     "https://github.com/openclimatefix/pvnet/issues/542",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19189",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19325",
#     "https://github.com/creatis-myriad/ASCENT/pull/160",
# ]
# upstream.introduced_by = [
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/18748",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/21244",
# ]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20245",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/19191",
# ]
# packages = ["lightning"]
# affected = ["lightning>=2.1.3,<2.2 or lightning>=2.6"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "ModelCheckpoint(monitor=..., save_last=True) in five epochs of which the second is the best"
# raises = "AssertionError"
# match = "last.ckpt: expected epoch 4, the last, got 1"
#
# [tool.repro.variants.fixed]
# about = "a second ModelCheckpoint without monitor for last.ckpt"
# source = "https://github.com/openclimatefix/pvnet/pull/544"
#
# [tool.repro.variants.all_kept]
# outcome = "passes"
# about = "save_top_k=-1: every epoch is saved, so last.ckpt is, too"
#
# [tool.repro.variants.linked]
# outcome = "fails"
# about = "save_last='link' links to the last file that was saved, in every release that has it"
# affected = []
# requires = ["lightning>=2.2"]
# claim = "save_last='link' allows accessing the latest checkpoint in a deterministic manner"
# source = "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.ModelCheckpoint.html"
# ///
"""After an upgrade `last.ckpt` is a copy of the best checkpoint, and a resume loses the epochs since.

Symptom: with `ModelCheckpoint(monitor=..., save_last=True)` a run that is resumed from `last.ckpt` goes on from the
epoch that was best. Silent.

Cause: until Lightning 2.1.2 and from 2.2 to 2.5 `last.ckpt` is written at the end of each validation, whether or not the
epoch is among the best. In 2.1.3 and 2.1.4 it is a link to the file that was saved last. From 2.6 it is written only if
another checkpoint was saved in the same step, as the documentation has it: "saves a last.ckpt copy whenever a checkpoint
file gets saved". The changelog of 2.6.0 says "Fixed `last.ckpt` being created and not linked to another checkpoint".

Fix: a second `ModelCheckpoint` that monitors nothing.

Watch: no check sees it, since what a file is kept for is known to the program alone.
"""

import os
import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader

LOSSES = [3.0, 1.0, 5.0, 6.0, 7.0]  # by epoch


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        self.log("val", LOSSES[self.current_epoch])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing(folder):
    return [ModelCheckpoint(folder, monitor="val", save_last=True)]


def fixed(folder):
    return [ModelCheckpoint(folder, monitor="val"), ModelCheckpoint(folder, filename="last")]


def all_kept(folder):
    return [ModelCheckpoint(folder, monitor="val", save_last=True, save_top_k=-1)]


def linked(folder):
    return [ModelCheckpoint(folder, monitor="val", save_last="link")]


VARIANTS = {v.__name__: v for v in (failing, fixed, all_kept, linked)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    loader = DataLoader(torch.ones(1, 1))
    with tempfile.TemporaryDirectory() as folder:
        options = {"max_epochs": len(LOSSES), "logger": False, "num_sanity_val_steps": 0}
        trainer = Trainer(
            accelerator=accelerator, strategy=strategy, devices=1, callbacks=VARIANTS[variant](folder), **options
        )
        trainer.fit(Model(), loader, loader)
        epoch = torch.load(os.path.join(folder, "last.ckpt"), weights_only=False)["epoch"]
    assert epoch == 4, f"last.ckpt: expected epoch 4, the last, got {epoch}"


if __name__ == "__main__":
    main(*sys.argv[1:])
