# /// script
# dependencies = ["torch>=2.1"]
#
# [tool.repro]
# id = "RPR-0096"
# title = "A compiled optimizer never steps again after a step without gradients"
# kind = "bug"
# upstream.reports = ["https://github.com/pytorch/pytorch/issues/115607"]
# upstream.fixed_by = ["https://github.com/pytorch/pytorch/pull/121291"]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/pull/102640",
#     "https://github.com/pytorch/pytorch/issues/115679",
# ]
# packages = ["torch"]
# affected = ["torch>=2.2,<2.3"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "six compiled steps of Adam, the fourth without a gradient"
# raises = "AssertionError"
# match = "expected weight -5.0 after five steps with a gradient, got -3.0"
#
# [tool.repro.variants.fixed]
# about = "call the compiled step only if there is a gradient"
#
# [tool.repro.variants.in_eager_mode]
# outcome = "passes"
# about = "compile the model and the loss, and not the optimizer's step"
#
# [tool.repro.variants.first_without]
# outcome = "fails"
# about = "the first of the six steps is the one without a gradient: there is no other"
# raises = "AssertionError"
# match = "expected weight -5.0 after five steps with a gradient, got 0.0"
# ///
"""A training whose optimizer is compiled stands still from the first iteration on in which nothing has a gradient.

Symptom: the loss no longer changes once a batch was skipped, or all was frozen for an iteration. Silent.
Besides its thread, the authors of TrainCheck have published a training that shows it, `pytorch-115607` in
https://github.com/OrderLab/TrainCheck-Evaluation-Workloads.

Cause: Dynamo calls `_init_group` of the optimizer once and compiles the rest for the parameters that it has found. The
version for a step in which all gradients are None does nothing, and in torch 2.2 no guard asks whether they still are:
it stands before the other version in the cache, and each later step takes it.

Fix: torch 2.3 guards on gradients that are None. Before, do not call the compiled step without gradients.

Watch: no check sees it, since nothing of a step is left to observe in what a compiler has traced.
"""

import sys

import torch


def failing(parameter, step):
    step()


def fixed(parameter, step):
    if parameter.grad is not None:
        step()


VARIANTS = {"failing": failing, "fixed": fixed, "in_eager_mode": failing, "first_without": failing}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([parameter], lr=1.0)

    def step():
        optimizer.step()

    if variant != "in_eager_mode":
        step = torch.compile(step, backend="eager")  # as with any backend: it is Dynamo that leaves the step out
    without = 0 if variant == "first_without" else 3
    for number in range(6):
        optimizer.zero_grad()
        if number != without:
            parameter.sum().backward()  # a gradient of 1: with one that never changes, Adam moves by the rate
        VARIANTS[variant](parameter, step)
    got = round(parameter.item(), 3)
    assert got == -5.0, f"expected weight -5.0 after five steps with a gradient, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
