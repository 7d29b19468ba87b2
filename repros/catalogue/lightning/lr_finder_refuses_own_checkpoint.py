# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0023"
# title = "The LR finder cannot load the checkpoint that it has just saved"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21757",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21401",
#     "https://github.com/ourownstory/neural_prophet/issues/1686",
# ]
# upstream.unreleased_fix = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21758"]
# upstream.related = ["https://github.com/CUNY-CL/yoyodyne/issues/305"]
# packages = ["lightning"]
# affected = ["lightning!=2.4.*,!=2.5.*", "torch>=2.6"]
# exists = ["torch>=2.6"]
# exists_source = "https://pytorch.org/docs/stable/notes/serialization.html"
# home = "2026-07"
#
# [tool.repro.variants.failing]
# about = "Tuner.lr_find for a model with an object of a user-defined class in save_hyperparameters"
# raises = "UnpicklingError"
# match = "Weights only load failed"
# frames = ["tuner/lr_finder.py:_lr_find"]
#
# [tool.repro.variants.fixed]
# about = "the class is passed to torch.serialization.add_safe_globals before the search"
# requires = ["torch>=2.4"]
# source = "https://pytorch.org/docs/stable/notes/serialization.html"
#
# [tool.repro.variants.ignored]
# outcome = "passes"
# about = "save_hyperparameters(ignore=...) keeps the object out of checkpoints"
#
# [tool.repro.variants.environment]
# outcome = "passes"
# about = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1, which applies as long as the library leaves the choice to torch"
#
# [tool.repro.variants.fit_argument]
# outcome = "fails"
# about = "the LearningRateFinder callback inside fit(..., weights_only=False)"
# requires = ["lightning>=2.6"]
# claim = "weights_only=False, passed to fit, applies to every load of that fit"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/21072"
#
# [tool.repro.variants.finder_argument]
# outcome = "fails"
# about = "lr_find(..., weights_only=False)"
# affected = []
# raises = "TypeError"
# match = "lr_find() got an unexpected keyword argument 'weights_only'"
# claim = "lr_find takes weights_only (merged upstream, in no release up to 2.6.6)"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/21758"
# ///
"""A learning rate search runs, and then cannot restore the model.

Symptom: `Tuner.lr_find` or the `LearningRateFinder` callback ends in `UnpicklingError: Weights only load failed` when
the search is done; a file `.lr_find_*.ckpt` is left behind.

Cause: `_lr_find` saves a full checkpoint, hyperparameters included, and restores it with
`_checkpoint_connector.restore(path)`, which passes no weights_only. Lightning 2.4 and 2.5 take that as False; earlier
and later releases leave the choice to torch, and torch from 2.6 refuses classes that it does not know. The
`weights_only` given to `fit` does not reach this load.

`Tuner.scale_batch_size` and the BatchSizeFinder callback restore their own checkpoint in the same way and fail alike;
the merged fix of lr_find (PR 21758, in no release up to 2.6.6) leaves them out.

Fix: none in a release. Mark the class as safe, or keep the object out of the hyperparameters.

Apart: here Lightning loads its own file within one call. In RPR-0022 the caller resumes from a checkpoint, and can pass
`weights_only` to `fit`.
"""

import os
import sys
import tempfile
from dataclasses import dataclass

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import LearningRateFinder
from lightning.pytorch.tuner import Tuner
from torch import nn
from torch.utils.data import DataLoader


@dataclass
class Config:
    width: int = 1


class Model(LightningModule):
    def __init__(self, config, ignore=()):
        super().__init__()
        self.save_hyperparameters(ignore=list(ignore))
        self.layer, self.lr = nn.Linear(1, 1), 0.01

    def training_step(self, batch, batch_idx):
        return self.layer(batch).square().mean()

    def train_dataloader(self):
        return DataLoader(torch.ones(8, 1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


def failing(new_trainer, ignore=(), **options):
    model = Model(Config(), ignore)
    Tuner(new_trainer()).lr_find(model, num_training=3, update_attr=False, **options)


def fixed(new_trainer):
    torch.serialization.add_safe_globals([Config])
    failing(new_trainer)


def ignored(new_trainer):
    failing(new_trainer, ignore=["config"])


def environment(new_trainer):
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    failing(new_trainer)


def fit_argument(new_trainer):
    finder = LearningRateFinder(num_training_steps=3, update_attr=False)
    new_trainer(callbacks=[finder]).fit(Model(Config()), weights_only=False)


def finder_argument(new_trainer):
    failing(new_trainer, weights_only=False)


VARIANTS = {v.__name__: v for v in (failing, fixed, ignored, environment, fit_argument, finder_argument)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:  # lr_find keeps its own checkpoint there
        options = {"accelerator": accelerator, "strategy": strategy, "devices": 1, "max_epochs": 1, "barebones": True}
        VARIANTS[variant](lambda **changes: Trainer(default_root_dir=folder, **options, **changes))


if __name__ == "__main__":
    main(*sys.argv[1:])
