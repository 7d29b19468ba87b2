# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0060"
# title = "Two groups that were given one tensor as learning rate get the rate of the last"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/126854",
#     "https://github.com/pytorch/pytorch/issues/162359",
#     "https://github.com/pytorch/pytorch/issues/163103",
# ]
# packages = ["torch"]
# affected = ["torch>=2.4"]
# home = "2025-11"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "a scheduler with a rate of its own for each of two groups that share a tensor"
# raises = "AssertionError"
# match = "expected the learning rates [0.25, 1.0], got [1.0, 1.0]"
#
# [tool.repro.variants.fixed]
# about = "learning rates as numbers"
#
# [tool.repro.variants.a_tensor_each]
# outcome = "passes"
# about = "a tensor of its own for each group"
# ///
"""Layer-wise learning rates have no effect when the rate is a tensor.

Symptom: with `lr=torch.tensor(...)`, as compiled optimizers want it, all groups train with the last group's rate.
Silent.

Cause: the optimizer's default is one tensor, which every group gets. Where a rate is a tensor, schedulers fill it in
place, so that compiled code sees the change: each group overwrites what the groups before it have got.

Fix: give each group a tensor of its own, or use numbers.

Watch: no check tells it from a healthy training, since groups with one rate are usual.
"""

import sys

import torch


def failing():
    return {"lr": torch.tensor(1.0)}, {}, {}


def fixed():
    return {"lr": 1.0}, {}, {}


def a_tensor_each():
    return {"lr": 1.0}, {"lr": torch.tensor(1.0)}, {"lr": torch.tensor(1.0)}


VARIANTS = {v.__name__: v for v in (failing, fixed, a_tensor_each)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    defaults, *own = VARIANTS[variant]()
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1, device=accelerator))], **options} for options in own]
    optimizer = torch.optim.Adam(groups, foreach=False, capturable=accelerator == "cuda", **defaults)
    torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda _: 0.25, lambda _: 1.0])
    got = [float(group["lr"]) for group in optimizer.param_groups]
    assert got == [0.25, 1.0], f"expected the learning rates [0.25, 1.0], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
