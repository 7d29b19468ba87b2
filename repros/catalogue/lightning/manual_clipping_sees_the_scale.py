# /// script
# dependencies = ["torch>=2.3", "lightning>=2.1"]
#
# [tool.repro]
# id = "RPR-0107"
# title = "clip_gradients in manual optimisation clips gradients that are still scaled"
# kind = "limitation"
# documented = "https://github.com/Lightning-AI/pytorch-lightning/issues/18089"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/18089",
#     "https://github.com/ESAOpenSR/SRGAN/pull/88",
# ]
# upstream.unreleased_fix = ["https://github.com/Lightning-AI/pytorch-lightning/pull/19536"]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/9694",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/9606",
#     "https://github.com/Stability-AI/stable-audio-tools/issues/110",
# ]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "manual_backward, clip_gradients, step, as the documentation shows it, with precision 16-mixed"
# claim = "self.clip_gradients(opt, gradient_clip_val=0.5, gradient_clip_algorithm='norm') between manual_backward and step"
# source = "https://lightning.ai/docs/pytorch/stable/model/manual_optimization.html"
# raises = "AssertionError"
# match = "the step after manual clipping to a norm of 1.0: expected 1.0, got 0.001"
#
# [tool.repro.variants.fixed]
# about = "clip_gradients in on_before_optimizer_step, which runs after the gradients are unscaled"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/9694"
#
# [tool.repro.variants.unscaled_by_hand]
# outcome = "fails"
# about = "unscale with the plugin's scaler, then clip: the step would unscale again, and raises"
# finds = ["crash"]
# raises = "RuntimeError"
# match = "unscale_() has already been called on this optimizer since the last update()."
# claim = "unscale the optimizers before clipping gradients"
# source = "https://github.com/ESAOpenSR/SRGAN/pull/88"
#
# [tool.repro.variants.automatic]
# outcome = "passes"
# contrast = true
# about = "automatic optimisation with Trainer(gradient_clip_val=1.0)"
# ///
"""With manual optimisation and 16-bit mixed precision the clipping all but removes the gradients.

Symptom: a model with `automatic_optimization = False`, `clip_gradients` and `precision="16-mixed"` learns very slowly;
without one of the three it learns, as with `bf16-mixed`, which has no scale. Silent.

Cause: `manual_backward` leaves the loss scale in the gradients, and `MixedPrecision.optimizer_step` unscales them
within `optimizer.step()`. `clip_gradients`, called between the two as the documentation shows, shortens the scaled
gradients to the limit; the step then divides by the scale. With automatic optimisation the gradients are unscaled
first. The plugin unscales without asking, so unscaling by hand raises.

Fix: none in a release. Clip in `on_before_optimizer_step`.

Watch: there is no check for `failing` yet: Lightning unscales between the clipping and the step, and
`clipped_while_scaled` asks whether it has unscaled, not when.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.plugins import MixedPrecision
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    """The gradient is 3, clipped 1, and so is a step of SGD with learning rate 1; 1 / 1024, if clipped as 3072."""

    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        self.manual_backward(self.layer(batch).mean())
        self.prepare(optimizer)
        optimizer.step()

    def prepare(self, optimizer):
        pass

    def clip(self, optimizer):
        self.clip_gradients(optimizer, gradient_clip_val=1.0, gradient_clip_algorithm="norm")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


class Failing(Model):
    def prepare(self, optimizer):
        self.clip(optimizer)


class Fixed(Model):
    def on_before_optimizer_step(self, optimizer):
        self.clip(optimizer)


class UnscaledByHand(Model):
    def prepare(self, optimizer):
        self.trainer.precision_plugin.scaler.unscale_(optimizer.optimizer)
        self.clip(optimizer)


class Automatic(Model):
    automatic_optimization = True

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()


VARIANTS = {"failing": Failing, "fixed": Fixed, "unscaled_by_hand": UnscaledByHand, "automatic": Automatic}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = VARIANTS[variant]()
    scaler = torch.amp.GradScaler(accelerator, init_scale=1024.0)
    options = {"plugins": [MixedPrecision("16-mixed", accelerator, scaler)], "max_epochs": 1, "barebones": True}
    options["gradient_clip_val"] = 1.0 if model.automatic_optimization else None
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=1, **options)
    trainer.fit(model, DataLoader(torch.tensor([[3.0]])))
    got = round(-model.layer.weight.item(), 3)
    assert got == 1.0, f"the step after manual clipping to a norm of 1.0: expected 1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
