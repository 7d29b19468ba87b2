# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0114"
# title = "A second model that is fitted with the same Trainer is not trained"
# kind = "by design"
# documented = "https://github.com/Lightning-AI/pytorch-lightning/issues/9636"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/12789",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/11425",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/9636",
#     "https://github.com/AI4OPT/ML4OPF/issues/16",
# ]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "trainer.fit(first), then trainer.fit(second), with max_epochs"
# raises = "AssertionError"
# match = "steps of the second model: expected 4, got 0"
#
# [tool.repro.variants.fixed]
# about = "a Trainer for each model"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/12789"
#
# [tool.repro.variants.progress_reset]
# outcome = "passes"
# about = "trainer.fit_loop.epoch_progress.reset() before the second fit"
#
# [tool.repro.variants.max_steps]
# outcome = "fails"
# about = "the same with max_steps instead of max_epochs"
# ///
"""A Trainer that has reached `max_epochs` once does not train another model.

Symptom: in a loop over folds or hyperparameters with one Trainer the first model alone is trained; the others are tested
as they were initialised. The log says that `max_epochs` was reached, as after every fit. Silent.

Cause: the number of epochs and steps done is kept in the Trainer's loops, not in the model, and a second `fit` goes on
from it: there is nothing left to do.

Fix: a Trainer for each model.

Apart: in RPR-0016 the epochs are not used up; a stop that was asked for in the first fit stays.

Watch: there is no check for it yet: a fit whose epochs are used up is what the resume of a finished run does.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.steps = nn.Linear(1, 1), 0

    def training_step(self, batch, batch_idx):
        self.steps += 1
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing(trainer, new_trainer):
    return trainer


def fixed(trainer, new_trainer):
    return new_trainer()


def progress_reset(trainer, new_trainer):
    trainer.fit_loop.epoch_progress.reset()
    return trainer


def max_steps(trainer, new_trainer):
    return trainer


VARIANTS = {v.__name__: v for v in (failing, fixed, progress_reset, max_steps)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    limit = {"max_steps": 4} if variant == "max_steps" else {"max_epochs": 1}

    def new_trainer():
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, barebones=True, **limit)

    first, second, loader = Model(), Model(), DataLoader(torch.ones(4, 1))
    trainer = new_trainer()
    trainer.fit(first, loader)
    VARIANTS[variant](trainer, new_trainer).fit(second, loader)
    assert second.steps == 4, f"steps of the second model: expected 4, got {second.steps}"


if __name__ == "__main__":
    main(*sys.argv[1:])
