# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0072"
# title = "CosineAnnealingLR raises the learning rate again after T_max"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html"
# upstream.reports = [
#     "https://github.com/lucidrains/imagen-pytorch/issues/71",
#     "https://github.com/skorch-dev/skorch/issues/610",
#     "https://github.com/sthalles/SimCLR/issues/8",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
# finds = ["schedule_turns"]
#
# [tool.repro.variants.failing]
# about = "T_max in epochs, and a step for each of ten batches"
# raises = "AssertionError"
# match = "expected the learning rate to end at 0.0, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "T_max in the steps that the schedule makes"
# source = "https://github.com/skorch-dev/skorch/issues/610"
#
# [tool.repro.variants.stepped_each_epoch]
# outcome = "passes"
# about = "one step of the schedule for each epoch"
# ///
"""A training with cosine decay ends with the learning rate that it began with.

Symptom: the loss rises again in the second half of the training; the rate's plot is a valley. Silent.

Cause: the schedule is a cosine of the number of steps, with the period 2 * T_max, and has no end: after T_max steps it
climbs back. A T_max in epochs and a step for each batch take it up and down many times.

Fix: T_max in the unit in which the scheduler is stepped, and as many as there will be.
"""

import sys

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

EPOCHS, BATCHES = 5, 10


def failing(optimizer):
    return CosineAnnealingLR(optimizer, T_max=EPOCHS), BATCHES


def fixed(optimizer):
    return CosineAnnealingLR(optimizer, T_max=EPOCHS * BATCHES), BATCHES


def stepped_each_epoch(optimizer):
    return CosineAnnealingLR(optimizer, T_max=EPOCHS), 1


VARIANTS = {v.__name__: v for v in (failing, fixed, stepped_each_epoch)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    layer = torch.nn.Linear(1, 1, device=accelerator)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    scheduler, steps = VARIANTS[variant](optimizer)
    data = torch.utils.data.DataLoader(torch.zeros(BATCHES, 1), shuffle=True)
    for _ in range(EPOCHS):
        for number, batch in enumerate(data):
            optimizer.zero_grad()
            layer(batch.to(accelerator)).sum().backward()
            optimizer.step()
            if number < steps:
                scheduler.step()
    got = round(optimizer.param_groups[0]["lr"], 4)
    assert got == 0.0, f"expected the learning rate to end at 0.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
