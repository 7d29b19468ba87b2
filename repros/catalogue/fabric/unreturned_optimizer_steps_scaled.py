# /// script
# dependencies = ["torch>=2.3", "lightning>=2.1"]
#
# [tool.repro]
# id = "RPR-0121"
# title = "Fabric: the optimizer that setup() did not return steps with scaled gradients"
# kind = "misuse"
# documented = "https://lightning.ai/docs/fabric/stable/api/fabric_methods.html"
# upstream.reports = []
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/issues/18510"]
# packages = ["lightning"]
# home = "2026-07"
# silent = true
# finds = ["scale_left_in_gradients"]
#
# [tool.repro.variants.failing]
# about = "fabric.setup(model, optimizer), and then a step of the optimizer that went in"
# raises = "AssertionError"
# match = "four steps with the gradient 3: expected 12.0, got 12288.0"
#
# [tool.repro.variants.fixed]
# about = "a step of the optimizer that setup returned"
# source = "https://lightning.ai/docs/fabric/stable/api/fabric_methods.html"
#
# [tool.repro.variants.module_alone]
# outcome = "fails"
# about = "fabric.setup_module(model), and an optimizer that Fabric does not know"
# ///
"""A training with Fabric in 16-bit mixed precision makes steps that are as large as the loss scale.

Symptom: the loss explodes with `precision="16-mixed"`, and the same code trains well in 32 bits. Silent.

Cause: `fabric.backward` scales the loss. The gradients are unscaled by the `step` of the wrapper that `fabric.setup`
returns; the optimizer that was handed in is unchanged and steps with what it finds.

Fix: set up the optimizer, and use what is returned from then on.
"""

import sys

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins import MixedPrecision
from torch import nn


def failing(fabric, model, optimizer):
    model, _ = fabric.setup(model, optimizer)
    return model, optimizer


def fixed(fabric, model, optimizer):
    return fabric.setup(model, optimizer)


def module_alone(fabric, model, optimizer):
    return fabric.setup_module(model), optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed, module_alone)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    precision = MixedPrecision("16-mixed", accelerator, torch.amp.GradScaler(accelerator, init_scale=1024.0))
    fabric = Fabric(accelerator=accelerator, strategy=strategy, devices=1, plugins=[precision])
    layer = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(layer.weight)
    model, optimizer = VARIANTS[variant](fabric, layer, torch.optim.SGD(layer.parameters(), lr=1.0))
    for _ in range(4):
        fabric.backward(model(torch.tensor([[3.0]])).mean())
        optimizer.step()
        optimizer.zero_grad()
    got = -layer.weight.item()  # 4 * 3, or 4 * 3 * 1024 with the scale
    assert got == 12.0, f"four steps with the gradient 3: expected 12.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
