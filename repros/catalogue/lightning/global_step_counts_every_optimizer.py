# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0118"
# title = "max_steps ends a training with two optimizers after half of its batches"
# kind = "by design"
# documented = "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.trainer.trainer.Trainer.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/17958",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/19589",
#     "https://github.com/ashleve/lightning-hydra-template/issues/409",
# ]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "max_steps=10 with a manual optimisation that steps two optimizers with each batch"
# claim = "LightningModule.global_step: total training batches seen across all epochs"
# source = "https://lightning.ai/docs/pytorch/stable/common/lightning_module.html"
# raises = "AssertionError"
# match = "max_steps=10: expected 10 batches, got 5"
#
# [tool.repro.variants.fixed]
# about = "take the counting out of one optimizer's step, anew in each training_step"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/17958"
#
# [tool.repro.variants.stepped_unwrapped]
# outcome = "passes"
# about = "step one of them as the plain torch optimizer, which Lightning does not see"
#
# [tool.repro.variants.once]
# outcome = "fails"
# about = "the counting taken out once, in on_train_start: Lightning sets it again before each training_step"
# ///
"""A training with a generator and a discriminator stops too early, and saves at other steps than asked.

Symptom: with two optimizers `max_steps=10` trains 5 batches; `every_n_train_steps` and schedules by `global_step` run
twice as fast. The logger's axis does not: it counts batches. Silent.

Cause: `trainer.global_step` is the number of optimizer steps taken, and with manual optimisation each
`LightningOptimizer.step` adds one. `Trainer.global_step` is documented so: "This includes multiple optimizers";
`LightningModule.global_step`, which is the same number, as "Total training batches seen across all epochs".

Fix: count one optimizer only, by replacing `_on_before_step` and `_on_after_step` of the others, or ask for twice the
steps.

Watch: no check sees it, since how many batches a training should have is known to the program alone.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.generator, self.discriminator, self.batches = nn.Linear(1, 1), nn.Linear(1, 1), 0

    def training_step(self, batch, batch_idx):
        self.batches += 1
        self.prepare()
        for optimizer in self.both():
            optimizer.zero_grad()
        self.manual_backward(self.discriminator(self.generator(batch)).mean())
        for optimizer in self.both():
            optimizer.step()

    def prepare(self):
        pass

    def both(self):
        return self.optimizers()

    def uncount(self):
        first = self.optimizers()[0]
        first._on_before_step = lambda: self.trainer.profiler.start("optimizer_step")  # noqa: SLF001
        first._on_after_step = lambda: self.trainer.profiler.stop("optimizer_step")  # noqa: SLF001

    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), 0.01) for part in (self.generator, self.discriminator)]


class Failing(Model):
    pass


class Fixed(Model):
    def prepare(self):
        self.uncount()


class SteppedUnwrapped(Model):
    def both(self):
        first, second = self.optimizers()
        return [first.optimizer, second]


class Once(Model):
    def on_train_start(self):
        self.uncount()


VARIANTS = {"failing": Failing, "fixed": Fixed, "stepped_unwrapped": SteppedUnwrapped, "once": Once}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = VARIANTS[variant]()
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, max_steps=10, barebones=True)
    trainer.fit(model, DataLoader(torch.ones(20, 1)))
    assert model.batches == 10, f"max_steps=10: expected 10 batches, got {model.batches}"


if __name__ == "__main__":
    main(*sys.argv[1:])
