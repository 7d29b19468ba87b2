# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0027"
# title = "The LearningRateFinder callback takes its batches out of the first epoch"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19575",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20355",
# ]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21056"]
# packages = ["lightning"]
# affected = ["lightning>=2.1,<2.5.3"]
# exists = ["lightning>=1.8"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/pull/13802"
# home = "2023-12"
# silent = true
# finds = ["epoch_cut_short"]
#
# [tool.repro.variants.failing]
# about = "fit with the LearningRateFinder callback, which searches for 3 of 8 batches"
# raises = "AssertionError"
# match = "the first epoch: expected 8 batches, got 5"
#
# [tool.repro.variants.fixed]
# about = "Tuner.lr_find before the fit"
# source = "https://lightning.ai/docs/pytorch/stable/advanced/training_tricks.html"
#
# [tool.repro.variants.early_stopping]
# outcome = "fails"
# about = "a search of all 8 batches, and EarlyStopping by a validation metric: the empty epoch ends before any validation"
# finds = ["epoch_cut_short", "crash"]
# raises = "RuntimeError"
# match = "Early stopping conditioned on metric `val` which is not available"
# ///
"""Training begins at the batch where the learning rate search stopped.

Symptom: the first epoch is shorter by the batches of the search, 100 by default; if the search took all of them, the
epoch is empty, and a callback that reads a validation metric at its end raises. Silent otherwise.

Cause: from Lightning 2.1 `_FitLoop.setup_data` makes the loader's iterator, here for the search that the callback runs
in `on_fit_start`. `_lr_find` restores the loops' state but leaves `fit_loop._combined_loader` with that iterator, and
`_TrainingEpochLoop.on_run_start` calls `iter()` only from the second epoch on.

Fix: Lightning 2.5.3 drops the loader after the search. Before: `Tuner.lr_find`, then a fresh Trainer.
"""

import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping, LearningRateFinder
from lightning.pytorch.tuner import Tuner
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.lr, self.batches = nn.Linear(1, 1), 0.01, 0

    def on_train_start(self):  # called for the search, then for the training
        self.batches = 0

    def training_step(self, batch, batch_idx):
        self.batches += 1
        return self.layer(batch).square().mean()

    def validation_step(self, batch, batch_idx):
        self.log("val", self.layer(batch).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


def failing(new_trainer, model, loaders):
    new_trainer(LearningRateFinder(num_training_steps=3)).fit(model, *loaders)


def fixed(new_trainer, model, loaders):
    Tuner(new_trainer()).lr_find(model, *loaders, num_training=3)
    new_trainer().fit(model, *loaders)


def early_stopping(new_trainer, model, loaders):
    new_trainer(LearningRateFinder(num_training_steps=8), EarlyStopping("val")).fit(model, *loaders)


VARIANTS = {v.__name__: v for v in (failing, fixed, early_stopping)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, loaders = Model(), [DataLoader(torch.ones(8, 1)), DataLoader(torch.ones(1, 1))]
    with tempfile.TemporaryDirectory() as folder:  # lr_find keeps its own checkpoint there
        options = {
            "accelerator": accelerator,
            "strategy": strategy,
            "devices": 1,
            "max_epochs": 1,
            "logger": False,
            "enable_checkpointing": False,
        }
        VARIANTS[variant](lambda *them: Trainer(default_root_dir=folder, callbacks=[*them], **options), model, loaders)
    assert model.batches == 8, f"the first epoch: expected 8 batches, got {model.batches}"


if __name__ == "__main__":
    main(*sys.argv[1:])
