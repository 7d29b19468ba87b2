# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0016"
# title = "A Trainer that was stopped early does not train again"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/18727"]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/19177"]
# packages = ["lightning"]
# affected = ["lightning<2.5.1"]
# home = "2023-12"
# silent = true
# finds = ["fit_without_steps"]
#
# [tool.repro.variants.failing]
# about = "stop the first fit with trainer.should_stop, then fit again for one more epoch"
# raises = "AssertionError"
# match = "the second fit: expected 4 steps, got 0"
#
# [tool.repro.variants.fixed]
# about = "trainer.should_stop = False before the second fit"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/18727"
#
# [tool.repro.variants.fresh_trainer]
# outcome = "passes"
# about = "a fresh Trainer for the second fit"
# ///
"""A fit after an early-stopped fit returns at once, as if it had trained.

Symptom: after early stopping, a timer or `trainer.should_stop = True`, every further `fit` of that Trainer runs 0
steps and reports nothing. Silent.

Cause: `trainer.should_stop` is set to False in `Trainer.__init__` alone, so the next `fit` finds it True, and
`_FitLoop.done` is True before the first batch.

Fix: Lightning 2.5.1 resets it as a fit begins. Before: reset it yourself.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.steps, self.stop_at = nn.Linear(1, 1), 0, 2

    def training_step(self, batch, batch_idx):
        self.steps += 1
        self.trainer.should_stop = self.trainer.should_stop or self.steps == self.stop_at
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing(trainer, new_trainer):
    return trainer


def fixed(trainer, new_trainer):
    trainer.should_stop = False
    return trainer


def fresh_trainer(trainer, new_trainer):
    return new_trainer()


VARIANTS = {v.__name__: v for v in (failing, fixed, fresh_trainer)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")

    def new_trainer():
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_epochs=1, barebones=True)

    model, loader, trainer = Model(), DataLoader(torch.ones(4, 1)), new_trainer()
    trainer.fit(model, loader)
    model.steps, model.stop_at = 0, None
    trainer = VARIANTS[variant](trainer, new_trainer)
    trainer.fit_loop.max_epochs = trainer.current_epoch + 1
    trainer.fit(model, loader)
    assert model.steps == 4, f"the second fit: expected 4 steps, got {model.steps}"


if __name__ == "__main__":
    main(*sys.argv[1:])
