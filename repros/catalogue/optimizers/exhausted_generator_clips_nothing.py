# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0065"
# title = "clip_grad_norm_ clips nothing when it gets a generator that was used up"
# kind = "misuse"
# documented = "https://github.com/pytorch/pytorch/pull/151529"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/148259",
#     "https://github.com/pytorch/torchtitan/pull/1258",
#     "https://github.com/ShusenTang/Dive-into-DL-PyTorch/issues/101",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
# finds = ["clipped_nothing"]
#
# [tool.repro.variants.failing]
# about = "keep model.parameters() and clip what it yields at each step"
# raises = "AssertionError"
# match = "expected a step of 1.0, the limit of the norm, got 5.0"
#
# [tool.repro.variants.fixed]
# about = "keep a list of the parameters"
# source = "https://github.com/pytorch/torchtitan/pull/1258"
#
# [tool.repro.variants.asked_each_time]
# outcome = "passes"
# about = "call model.parameters() for each clipping"
# ///
"""Gradients are clipped in the first step of a training and in no other.

Symptom: the loss explodes although clipping is configured; the logged norm is 0 from the second step on. Silent, up to
the release in which torch began to warn of an empty generator.

Cause: `Module.parameters()` is a generator, which yields its parameters once. `clip_grad_norm_` takes any iterable, and an
exhausted one has no gradients to clip; the optimizer made its own list long before.

Fix: `list(model.parameters())`, or ask the model each time.
"""

import sys

import torch


def failing(model):
    parameters = model.parameters()
    return lambda: parameters


def fixed(model):
    parameters = list(model.parameters())
    return lambda: parameters


def asked_each_time(model):
    return model.parameters


VARIANTS = {v.__name__: v for v in (failing, fixed, asked_each_time)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = torch.nn.Linear(1, 1, bias=False, device=accelerator)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    parameters = VARIANTS[variant](model)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.full((1, 1), 5.0, device=accelerator)).sum().backward()  # a gradient of 5
        torch.nn.utils.clip_grad_norm_(parameters(), 1.0)
        before = model.weight.item()
        optimizer.step()
    got = round(before - model.weight.item(), 3)
    assert got == 1.0, f"expected a step of 1.0, the limit of the norm, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
