# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0011"
# title = "A no_grad forward inside autocast takes the next forward's weight gradient away"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/65766",
#     "https://github.com/pytorch/pytorch/issues/105211",
#     "https://github.com/pytorch/pytorch/issues/112583",
#     "https://github.com/pytorch/pytorch/issues/158232",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20644",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19517",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20251",
# ]
# upstream.fixed_by = ["https://github.com/pytorch/pytorch/pull/165068"]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/20921",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/21616",
# ]
# packages = ["torch"]
# affected = ["torch<2.11"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
# finds = ["weight_unconnected"]
#
# [tool.repro.variants.failing]
# about = "an evaluation under no_grad, then a training forward, in one autocast block"
# raises = "AssertionError"
# match = "expected weight gradient 3.0, got None"
#
# [tool.repro.variants.trainer]
# outcome = "fails"
# about = "the same in the training_step of a Trainer with precision=\"bf16-mixed\""
# requires = ["lightning>=2.0"]
# affected = ["torch<2.11", "no lightning>=2.5.5"]
#
# [tool.repro.variants.fixed]
# about = "one autocast block for each forward"
# source = "https://github.com/pytorch/pytorch/issues/65766"
#
# [tool.repro.variants.cache_cleared]
# outcome = "passes"
# about = "torch.clear_autocast_cache() between the two"
# source = "https://github.com/pytorch/pytorch/issues/65766"
#
# [tool.repro.variants.cache_disabled]
# outcome = "passes"
# about = "autocast(cache_enabled=False)"
# source = "https://github.com/pytorch/pytorch/issues/65766"
# ///
"""Under mixed precision a layer that was first used under no_grad does not learn.

Symptom: linear and convolution layers get no gradient (`None`), while normalisation layers go on learning. Silent as
long as anything else in the loss has a gradient.

Cause: autocast keeps each parameter's low-precision copy until its block ends (`cached_cast` in ATen's
autocast_mode.cpp). A copy made under `no_grad` is not connected to the parameter in the graph, and the training forward
in the same block reuses it.

Fix: torch 2.11 makes cached copies with gradients on. Before: leave the autocast block, or clear or disable its
cache. Lightning's Trainer disables the cache from 2.5.5 on, so a fit with `precision` is free of this on any torch;
an autocast block of one's own is not. (Merged, in no release up to 2.6.6: it keeps the cache, and clears it after a
`no_grad` block.)

Apart: where no other parameter has a gradient, an error takes the silence's place. Alone it is "element 0 of tensors
does not require grad"; under DDP it is the message of RPR-0024, although training_step uses every parameter.
"""

import sys

import torch
from torch import nn


class Training:
    """A model with output w * x and x = 3: the gradient of w is 3."""

    def __init__(self, device):
        self.device = device
        self.layer, self.x = nn.Linear(1, 1, bias=False, device=device), torch.full((1, 1), 3.0, device=device)
        self.scale = torch.ones(1, device=device, requires_grad=True)  # goes on learning

    def autocast(self, **options):
        return torch.autocast(self.device, dtype=torch.bfloat16, **options)

    def evaluate(self):
        with torch.no_grad():
            self.layer(self.x)


def failing(training):
    with training.autocast():
        training.evaluate()
        return training.layer(training.x)


def fixed(training):
    with training.autocast():
        training.evaluate()
    with training.autocast():
        return training.layer(training.x)


def cache_cleared(training):
    with training.autocast():
        training.evaluate()
        torch.clear_autocast_cache()
        return training.layer(training.x)


def cache_disabled(training):
    with training.autocast(cache_enabled=False):
        training.evaluate()
        return training.layer(training.x)


def trainer(training):
    from lightning.pytorch import LightningModule, Trainer  # noqa: PLC0415 # the failure needs torch alone

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = training.layer

        def training_step(self, batch):
            training.evaluate()
            return (self.layer(training.x) * training.scale).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.layer.parameters(), lr=0.0)

    fit = Trainer(accelerator=training.device, devices=1, precision="bf16-mixed", max_steps=1, barebones=True)
    fit.fit(Module(), torch.utils.data.DataLoader(torch.zeros(1)))


VARIANTS = {v.__name__: v for v in (failing, trainer, fixed, cache_cleared, cache_disabled)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    training = Training(accelerator)
    output = VARIANTS[variant](training)
    if output is not None:  # the Trainer calls backward itself
        (output * training.scale).sum().backward()
    gradient = training.layer.weight.grad
    got = gradient if gradient is None else gradient.item()
    assert got == 3.0, f"expected weight gradient 3.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
