# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0022"
# title = "A resume refuses the hyperparameters that Lightning itself has saved"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/notes/serialization.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20450",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21459",
#     "https://github.com/chemprop/chemprop/issues/1227",
#     "https://github.com/sktime/pytorch-forecasting/issues/1998",
#     "https://github.com/pytorch-tabular/pytorch_tabular/issues/621",
# ]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20058",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/20010",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/21072",
# ]
# packages = ["lightning"]
# affected = ["lightning!=2.4.*,!=2.5.*", "torch>=2.6"]
# exists = ["torch>=2.6"]
# exists_source = "https://pytorch.org/docs/stable/notes/serialization.html"
# home = "2026-07"
#
# [tool.repro.variants.failing]
# about = "fit with ckpt_path, for a model with an object of a user-defined class in save_hyperparameters"
# raises = "UnpicklingError"
# match = "Weights only load failed"
# frames = ["_restore_modules_and_callbacks"]
#
# [tool.repro.variants.fixed]
# about = "fit(..., weights_only=False), for a trusted checkpoint"
# requires = ["lightning>=2.6"]
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/21072"
#
# [tool.repro.variants.allowed]
# outcome = "passes"
# about = "the class is passed to torch.serialization.add_safe_globals"
# requires = ["torch>=2.4"]
# source = "https://pytorch.org/docs/stable/notes/serialization.html"
#
# [tool.repro.variants.environment]
# outcome = "passes"
# about = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1, which applies as long as the library leaves the choice to torch"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/20058"
#
# [tool.repro.variants.plain_values]
# outcome = "passes"
# about = "save_hyperparameters gets plain numbers and text only"
# ///
"""Training stores a checkpoint that training cannot load.

Symptom: `fit(..., ckpt_path=...)`, `validate`, `test`, `predict`, `load_from_checkpoint` and `Fabric.load` end in
`UnpicklingError: Weights only load failed`, for a checkpoint of the same program.

Cause: `dump_checkpoint` pickles whatever `save_hyperparameters` was given. From torch 2.6 `torch.load` by default
refuses all but a few classes. Lightning before 2.4 passes no `weights_only`; 2.4 and 2.5 pass False; from 2.6 `_load`
passes the `weights_only` of `fit`, by default None, which leaves the choice to torch. LightningCLI reads `--ckpt_path`
by itself with `weights_only=True` from 2.5.5 on, and takes no notice of `--weights_only=false`.

Fix: `weights_only=False` for the call, from Lightning 2.6, but not under LightningCLI; or mark the class as safe; or keep hyperparameters plain.

Apart: here the caller asks for the load and can pass `weights_only`. In RPR-0023 the LR finder loads a file of its own.
"""

import os
import sys
import tempfile
from dataclasses import dataclass

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


@dataclass
class Config:
    width: int = 1


class Model(LightningModule):
    def __init__(self, config):
        super().__init__()
        self.save_hyperparameters()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def train_dataloader(self):
        return DataLoader(torch.ones(2, 1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing(trainer, path):
    trainer.fit(Model(Config()), ckpt_path=path)


def fixed(trainer, path):
    trainer.fit(Model(Config()), ckpt_path=path, weights_only=False)


def allowed(trainer, path):
    torch.serialization.add_safe_globals([Config])
    trainer.fit(Model(Config()), ckpt_path=path)


def environment(trainer, path):
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    trainer.fit(Model(Config()), ckpt_path=path)


def plain_values(trainer, path):
    trainer.fit(Model(vars(Config())), ckpt_path=path)


VARIANTS = {v.__name__: v for v in (failing, fixed, allowed, environment, plain_values)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")

    def new_trainer(epochs):
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=epochs, barebones=True)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "first.ckpt")
        first = new_trainer(1)
        first.fit(Model(vars(Config()) if variant == "plain_values" else Config()))
        first.save_checkpoint(path)
        VARIANTS[variant](new_trainer(2), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
