# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0021"
# title = "Tuner.lr_find dies of its own exit exception in ranks that a launcher started"
# kind = "bug"
# upstream.reports = []
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/15304",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/11089",
# ]
# packages = ["lightning"]
# home = "2023-12"
# strategies = ["ddp_spawn", "ddp_fork", "ddp"]
# cold = ["ddp_spawn", "ddp_fork"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "Tuner.lr_find with a Trainer that launches its ranks itself"
# strategies = ["ddp_spawn", "ddp_fork"]
# raises = "_TunerExitException"
# match = "_TunerExitException"
#
# [tool.repro.variants.fixed]
# about = "the search runs in one process, the fit in launched ranks"
# strategies = ["ddp_spawn", "ddp_fork"]
#
# [tool.repro.variants.finder_callback]
# outcome = "passes"
# about = "the LearningRateFinder callback, which searches inside the fit"
# strategies = ["ddp_fork"]
#
# [tool.repro.variants.script_per_rank]
# outcome = "passes"
# about = "the same under ddp, where every rank runs the whole script"
# strategies = ["ddp"]
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/15304"
# ///
"""A learning rate search under ddp_spawn, ddp_fork or ddp_notebook dies of the exception that should end it.

Symptom: `ProcessRaisedException: Process 0 terminated with the following error`, with `_TunerExitException` as the last
line of its traceback; the search has no result.

Cause: the search runs inside `fit` and leaves it by raising `_TunerExitException`, which `_call_and_handle_interrupt`
catches around `launcher.launch`. `_MultiProcessingLauncher` runs the fit in child processes, where nothing catches it;
the parent gets torch's ProcessRaisedException. The search's result would be lost with the child in any case. Under
`ddp` the rank is the calling process, so the exception reaches its handler.

Fix: none in any release; nobody has reported it, it was found here. Search in one process, or with the callback
inside the fit, or use `ddp`.
"""

import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import LearningRateFinder
from lightning.pytorch.tuner import Tuner
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.lr = nn.Linear(1, 1), 0.01

    def training_step(self, batch, batch_idx):
        return self.layer(batch).square().mean()

    def train_dataloader(self):
        return DataLoader(torch.ones(8, 1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


def failing(new_trainer):
    model = Model()
    Tuner(new_trainer()).lr_find(model, num_training=3, update_attr=False)
    new_trainer().fit(model)


def fixed(new_trainer):
    model = Model()
    Tuner(new_trainer(strategy="auto", devices=1)).lr_find(model, num_training=3, update_attr=False)
    new_trainer().fit(model)


def finder_callback(new_trainer):
    new_trainer(callbacks=[LearningRateFinder(num_training_steps=3, update_attr=False)]).fit(Model())


def script_per_rank(new_trainer):
    failing(new_trainer)


VARIANTS = {v.__name__: v for v in (failing, fixed, finder_callback, script_per_rank)}


def main(variant="failing", strategy="ddp_spawn", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:  # lr_find keeps its own checkpoint there
        options = {"accelerator": accelerator, "strategy": strategy, "devices": 2, "max_epochs": 1, "barebones": True}
        VARIANTS[variant](lambda **changes: Trainer(default_root_dir=folder, **{**options, **changes}))


if __name__ == "__main__":
    main(*sys.argv[1:])
