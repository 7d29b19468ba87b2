# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0051"
# title = "A scheduler made after the optimizer was loaded resets the learning rate"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/65342",
#     "https://github.com/pytorch/pytorch/issues/119168",
# ]
# packages = ["torch"]
# home = "2023-12"
# silent = true
# finds = ["rate_reset"]
#
# [tool.repro.variants.failing]
# about = "load the optimizer, make OneCycleLR, load it"
# raises = "AssertionError"
# match = "expected learning rate 0.097, got 0.004"
#
# [tool.repro.variants.fixed]
# about = "make the scheduler first (here OneCycleLR), then load optimizer and scheduler"
# source = "https://github.com/pytorch/pytorch/issues/65342"
# ///
"""A resume that loads the optimizer before the scheduler is made.

Symptom: the first step after the resume uses the scheduler's initial learning rate. There is no error.

Cause: the constructor of a scheduler writes its initial learning rate into the optimizer, over the one that was loaded;
`scheduler.load_state_dict` restores the scheduler's counters, and not the optimizer's learning rate. The documentation
of `Optimizer.load_state_dict` warns of it (in torch 2.9, not yet in 2.6): load the optimizer "after initializing" the
scheduler.

This concerns any scheduler whose constructor sets a rate, and those within SequentialLR and ChainedScheduler, too.

Fix: make the scheduler, with all that it is composed of, before the optimizer's state is loaded.
"""

import sys

import torch
from torch.optim.lr_scheduler import OneCycleLR


def new_optimizer():
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)


def new_scheduler(optimizer):
    return OneCycleLR(optimizer, max_lr=0.1, total_steps=11, pct_start=0.5)


def failing(checkpoint):
    optimizer = new_optimizer()
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler = new_scheduler(optimizer)
    scheduler.load_state_dict(checkpoint["scheduler"])
    return optimizer


def fixed(checkpoint):
    optimizer = new_optimizer()
    scheduler = new_scheduler(optimizer)
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    return optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    optimizer = new_optimizer()
    scheduler = new_scheduler(optimizer)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    expected = round(optimizer.param_groups[0]["lr"], 3)
    checkpoint = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    got = round(VARIANTS[variant](checkpoint).param_groups[0]["lr"], 3)
    assert got == expected, f"expected learning rate {expected}, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
