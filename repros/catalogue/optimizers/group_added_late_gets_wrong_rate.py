# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0053"
# title = "LinearLR takes the rate of a group that is added in the warm-up far past its value"
# kind = "bug"
# upstream.reports = []
# upstream.related = [
#     "https://github.com/pytorch/pytorch/issues/53712",
#     "https://github.com/pytorch/pytorch/issues/79888",
#     "https://github.com/huggingface/transformers/issues/20029",
#     "https://github.com/pytorch/pytorch/issues/20997",
#     "https://github.com/pytorch/pytorch/issues/62475",
#     "https://github.com/pytorch/pytorch/issues/104361",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/8720",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/12141",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "add a group with the base learning rate, 1, after the first of 100 warm-up steps from 0.01"
# raises = "AssertionError"
# match = "expected both groups to end at [1.0, 1.0], got [1.0, 50.25]"
#
# [tool.repro.variants.fixed]
# about = "add it with the rate that the first group has now"
#
# [tool.repro.variants.constant]
# outcome = "fails"
# about = "the same with ConstantLR from 0.1, which divides all rates by 0.1 at the end"
# raises = "AssertionError"
# match = "expected both groups to end at [1.0, 1.0], got [1.0, 10.0]"
#
# [tool.repro.variants.added_before]
# outcome = "passes"
# contrast = true
# about = "a group that is there when the scheduler is made ends as the first"
# ///
"""Layers that are unfrozen during a warm-up are trained with many times the learning rate.

Symptom: the loss explodes some time after `add_param_group`; the new group's rate rises past every value in the
configuration. Silent.

Cause: `LinearLR.get_lr` multiplies each group's present rate by the ratio of two successive factors. For a group that
was there from the start these ratios multiply to 1 / start_factor, from start_factor * lr up to lr; for a group that
begins at lr they take it past it: from factor 0.0199 up to 1, 50.25 times. ConstantLR divides it by its factor likewise.

Schedules that are computed from `base_lrs`, such as LambdaLR, leave the new group as it is, and raise ValueError from
torch 2.10 on. ReduceLROnPlateau raised IndexError in torch 2.4, no longer in 2.6.

Fix: add the group with the first group's current rate times the ratio that it should have to it.

Watch: no check tells it from a healthy training, since a rate that rises is what a warm-up does.
"""

import sys

import torch
from torch.optim.lr_scheduler import ConstantLR, LinearLR


def failing(optimizer, second):
    scheduler = LinearLR(optimizer, start_factor=0.01, total_iters=100)
    step(optimizer, scheduler)
    optimizer.add_param_group({"params": [second], "lr": 1.0})
    return scheduler


def fixed(optimizer, second):
    scheduler = LinearLR(optimizer, start_factor=0.01, total_iters=100)
    step(optimizer, scheduler)
    optimizer.add_param_group({"params": [second], "lr": optimizer.param_groups[0]["lr"]})
    return scheduler


def constant(optimizer, second):
    scheduler = ConstantLR(optimizer, factor=0.1, total_iters=100)
    step(optimizer, scheduler)
    optimizer.add_param_group({"params": [second], "lr": 1.0})
    return scheduler


def added_before(optimizer, second):
    optimizer.add_param_group({"params": [second]})
    scheduler = LinearLR(optimizer, start_factor=0.01, total_iters=100)
    step(optimizer, scheduler)
    return scheduler


VARIANTS = {v.__name__: v for v in (failing, fixed, constant, added_before)}


def step(optimizer, scheduler):
    optimizer.step()
    scheduler.step()


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    first, second = (torch.nn.Parameter(torch.zeros(1, device=accelerator)) for _ in range(2))
    optimizer = torch.optim.SGD([first], lr=1.0)
    scheduler = VARIANTS[variant](optimizer, second)
    for _ in range(99):
        step(optimizer, scheduler)
    got = [round(group["lr"], 2) for group in optimizer.param_groups]
    assert got == [1.0, 1.0], f"expected both groups to end at [1.0, 1.0], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
