# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0018"
# title = "The LearningRateFinder callback's suggestion never reaches the optimizer"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21030",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/16787",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/15856",
# ]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21068"]
# packages = ["lightning"]
# affected = ["lightning<2.5.4"]
# exists = ["lightning>=1.8"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/pull/13802"
# home = "2023-12"
# silent = true
# finds = ["rate_not_set"]
#
# [tool.repro.variants.failing]
# about = "fit with the LearningRateFinder callback"
# raises = "AssertionError"
# match = "the optimizer still has 123.0"
#
# [tool.repro.variants.fixed]
# about = "Tuner.lr_find before the fit, which then builds the optimizer anew"
# source = "https://lightning.ai/docs/pytorch/stable/advanced/training_tricks.html"
#
# [tool.repro.variants.set_by_hand]
# outcome = "passes"
# about = "with the callback; on_train_start hands the module's learning rate to the optimizer"
# ///
"""Training runs with the learning rate it was given, although the log says that another one was set.

Symptom: `Learning rate set to ...` is logged and `model.lr` holds that value, while the optimizer's parameter groups
keep the first one. Silent.

Cause: the callback searches in `on_fit_start`, when `Strategy.setup` has already built the optimizer from the first
learning rate. `_lr_find` sets the module's attribute and puts the old optimizer back.

Fix: Lightning 2.5.4 writes the value into the optimizer as well. Before: `Tuner.lr_find` before the fit, where
`configure_optimizers` reads the attribute. An optimizer that LightningCLI makes does not read it (#16787).
"""

import sys
import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import LearningRateFinder
from lightning.pytorch.tuner import Tuner
from torch import nn
from torch.utils.data import DataLoader

GIVEN = 123.0
SEARCH = {"min_lr": 1e-4, "max_lr": 1e-1, "early_stop_threshold": None}


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.lr, self.used = nn.Linear(1, 1), GIVEN, None

    def training_step(self, batch, batch_idx):
        self.used = self.trainer.optimizers[0].param_groups[0]["lr"]
        return self.layer(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


class ModelWithHook(Model):
    def on_train_start(self):
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.lr


def failing(new_trainer, loader, model=None):
    model = model or Model()
    new_trainer(callbacks=[LearningRateFinder(num_training_steps=20, **SEARCH)]).fit(model, loader)
    return model


def fixed(new_trainer, loader):
    model = Model()
    Tuner(new_trainer()).lr_find(model, loader, num_training=20, **SEARCH)
    new_trainer().fit(model, loader)
    return model


def set_by_hand(new_trainer, loader):
    return failing(new_trainer, loader, ModelWithHook())


VARIANTS = {v.__name__: v for v in (failing, fixed, set_by_hand)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:  # lr_find keeps its own checkpoint there

        def new_trainer(**options):
            options = {
                "accelerator": accelerator,
                "strategy": strategy,
                "devices": 1,
                "max_epochs": 1,
                "barebones": True,
                **options,
            }
            return Trainer(default_root_dir=folder, **options)

        model = VARIANTS[variant](new_trainer, DataLoader(torch.ones(40, 1)))
    assert model.lr != GIVEN, "the search found nothing"
    assert model.used == model.lr, f"expected the learning rate found, {model.lr}, the optimizer still has {model.used}"


if __name__ == "__main__":
    main(*sys.argv[1:])
