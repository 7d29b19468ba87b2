# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0080"
# title = "get_optimizer_state_dict leaves a step behind in an optimizer that has made none"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/164929",
#     "https://github.com/pytorch/torchtitan/pull/4382",
# ]
# packages = ["torch"]
# home = "2025-11"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "ask for the state dict of a new Adam, as a first save does, and train"
# raises = "AssertionError"
# match = "expected the first step to move the weight by 0.1, got 0.0744"
#
# [tool.repro.variants.fixed]
# about = "clear the optimizer's state after the call"
#
# [tool.repro.variants.not_asked]
# outcome = "passes"
# contrast = true
# about = "without the call the first step is Adam's"
# ///
"""The first steps of a training are too short when a checkpoint was written, or a template made, before them.

Symptom: with `torch.distributed.checkpoint.state_dict` the first updates of Adam are three quarters of what they should
be, and `state["step"]` is one ahead. Silent.

Cause: `_init_optim_state` makes the missing state by a step with zero gradients and a learning rate of zero. The
weights stay, but Adam's step counter is 1 from then on. Its bias correction then takes the first real gradient, which
has a share of 0.1 in the first moment, for one of two. With `Adam(weight_decay=...)` the moments are not zero either:
the decay of the weights is in them.

Fix: `optimizer.state.clear()` after the call, as long as nothing was trained.

Watch: there is no check for it yet: one would have to tell a step without gradients from those of a warm-up.
"""

import sys

import torch
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict


def failing(layer, optimizer):
    get_optimizer_state_dict(layer, optimizer)


def fixed(layer, optimizer):
    get_optimizer_state_dict(layer, optimizer)
    optimizer.state.clear()


def not_asked(layer, optimizer):
    pass


VARIANTS = {v.__name__: v for v in (failing, fixed, not_asked)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    layer = torch.nn.Linear(1, 1, bias=False, device=accelerator)
    torch.nn.init.constant_(layer.weight, 1.0)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    VARIANTS[variant](layer, optimizer)
    layer(torch.ones(1, 1, device=accelerator)).sum().backward()
    optimizer.step()
    # Adam's first step has the length lr. As the second: 0.1 / 0.19 by the root of 0.001 / 0.001999, 0.744.
    got = round(1.0 - layer.weight.item(), 4)
    assert got == 0.1, f"expected the first step to move the weight by 0.1, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
