# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0026"
# title = "A checkpoint that is saved every n steps is scored by the previous validation"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20185",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20919",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/17417",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/7694",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/14431",
# ]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21106"]
# packages = ["lightning"]
# home = "2023-12"
# silent = true
# finds = ["scored_before_validation"]
#
# [tool.repro.variants.failing]
# about = "ModelCheckpoint(monitor=..., every_n_train_steps=2), with a validation every second batch"
# raises = "AssertionError"
# match = "the best checkpoint: expected step 4, where val was 1.0, got 6"
#
# [tool.repro.variants.fixed]
# about = "without every_n_train_steps the checkpoint is saved as a validation ends"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/14431"
#
# [tool.repro.variants.epoch_end]
# outcome = "fails"
# about = "the same with epochs of two batches, so that every validation ends an epoch"
# affected = ["lightning<2.5.5"]
# ///
"""The checkpoint kept as the best was saved n steps after the validation that scored it.

Symptom: with `every_n_train_steps`, `best_model_path` holds weights that were never validated at `best_model_score`;
the first save is left out, or warns that the monitored key is missing. Silent after that.

Cause: `ModelCheckpoint.on_train_batch_end` runs before the validation of the same step and takes the metric from
`trainer.callback_metrics`, which is the previous validation's. From Lightning 2.5.5 it waits for the validation if the
metric does not exist yet, and at the last batch of an epoch; within an epoch it still does not.

Fix: none in a release for validations within an epoch. Leave `every_n_train_steps` out: with `val_check_interval` the
callback then saves at the end of each validation.
"""

import os
import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader

VAL = {2: 3.0, 4: 1.0, 6: 2.0, 8: 4.0}  # by step; step 4 has the best


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        self.log("val", VAL[self.trainer.global_step])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing(folder):
    return ModelCheckpoint(folder, "{step}", monitor="val", every_n_train_steps=2)


def fixed(folder):
    return ModelCheckpoint(folder, "{step}", monitor="val")


def epoch_end(folder):
    return failing(folder)


VARIANTS = {v.__name__: v for v in (failing, fixed, epoch_end)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    epochs, batches = (4, 2) if variant == "epoch_end" else (1, 8)
    loader, one = DataLoader(torch.ones(batches, 1)), DataLoader(torch.ones(1, 1))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = VARIANTS[variant](folder)
        options = {
            "accelerator": accelerator,
            "strategy": strategy,
            "devices": 1,
            "max_epochs": epochs,
            "logger": False,
            "num_sanity_val_steps": 0,
        }
        Trainer(val_check_interval=2, callbacks=[checkpoint], **options).fit(Model(), loader, one)
    best = int(os.path.basename(checkpoint.best_model_path)[len("step=") : -len(".ckpt")])
    assert best == 4, f"the best checkpoint: expected step 4, where val was 1.0, got {best}"


if __name__ == "__main__":
    main(*sys.argv[1:])
