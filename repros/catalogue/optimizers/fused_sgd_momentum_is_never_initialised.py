# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0041"
# title = "Fused SGD goes on with an uninitialised momentum when GradScaler skips the first step"
# kind = "bug"
# upstream.reports = ["https://github.com/LibreYOLO/libreyolo/pull/771"]
# packages = ["torch"]
# exists = ["torch>=2.3"]
# exists_source = "https://github.com/pytorch/pytorch/pull/116585"
# home = "2026-07"
# strategies = ["fused_sgd"]
# devices = ["cpu", "cuda"]
# silent = true
# finds = ["state_uninitialised"]
#
# [tool.repro.variants.failing]
# about = "SGD(momentum=0.5, fused=True) under a GradScaler whose first scale overflows"
# raises = "AssertionError"
# match = "expected weight -2.0 after the first step that was not skipped, got nan"
#
# [tool.repro.variants.fixed]
# about = "switch fused off"
# source = "https://github.com/LibreYOLO/libreyolo/pull/771"
#
# [tool.repro.variants.state_cleared]
# outcome = "passes"
# about = "drop the optimizer's state when the first step was skipped, which the falling scale shows"
#
# [tool.repro.variants.no_momentum]
# outcome = "passes"
# about = "SGD without momentum has nothing to initialise"
#
# [tool.repro.variants.no_overflow]
# outcome = "passes"
# contrast = true
# about = "an initial scale with which the first step succeeds"
# ///
"""The usual overflow of a mixed-precision training's first step turns the weights into garbage one step later.

Symptom: the loss is nan, or huge, from the second step on, in some runs and on some machines; another optimizer, or
SGD without `fused`, trains. Silent. An upstream report takes it that the kernel writes inf into the momentum in the
skipped step.

Cause: `torch.optim.SGD._init_group` marks a parameter's first step by `momentum_buffer` None; `_fused_sgd` then makes
the buffer with `torch.empty_like` and tells the kernel to write the gradient into it. With `fused=True` GradScaler
leaves the skip to the kernel, which sees `found_inf` and returns before it writes. The next step finds a buffer,
takes it for a momentum, and adds to whatever was in that memory. Fused Adam starts from `zeros_like` and is not
affected.

Fix: none in a release. Leave `fused` off, begin with a smaller `init_scale`, or drop the state after a skipped first
step.
"""

import sys

import torch

# Torch then fills new memory with nan, where otherwise chance decides what is in it.
torch.use_deterministic_algorithms(True)


def failing(weight):
    return torch.optim.SGD([weight], lr=1.0, momentum=0.5, fused=True)


def fixed(weight):
    return torch.optim.SGD([weight], lr=1.0, momentum=0.5)


def state_cleared(weight):
    return failing(weight)


def no_momentum(weight):
    return torch.optim.SGD([weight], lr=1.0, fused=True)


def no_overflow(weight):
    return failing(weight)


VARIANTS = {v.__name__: v for v in (failing, fixed, state_cleared, no_momentum, no_overflow)}


def main(variant="failing", strategy="fused_sgd", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight = torch.nn.Parameter(torch.zeros(1, device=accelerator))
    optimizer = VARIANTS[variant](weight)
    # A gradient of 2, scaled by 2 ** 127, is more than a float32 can hold; scaled by half of that it fits.
    scaler = torch.amp.GradScaler(accelerator, init_scale=2.0**126 if variant == "no_overflow" else 2.0**127)
    while weight.item() == 0.0:
        scale = scaler.get_scale()
        optimizer.zero_grad()
        scaler.scale((2.0 * weight).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        if variant == "state_cleared" and scaler.get_scale() < scale:
            optimizer.state.clear()
    got = weight.item()
    assert got == -2.0, f"expected weight -2.0 after the first step that was not skipped, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
