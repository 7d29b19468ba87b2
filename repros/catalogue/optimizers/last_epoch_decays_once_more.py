# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0182"
# title = "A scheduler made with last_epoch over a loaded optimizer decays the rate once more"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/102261",
#     "https://github.com/pytorch/pytorch/issues/60265",
# ]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/pull/60339",
#     "https://github.com/pytorch/pytorch/pull/149312",
# ]
# packages = ["torch"]
# home = "2023-12"
# silent = true
#
# [tool.repro.variants.failing]
# about = "resume at a milestone: load the optimizer, then make StepLR with last_epoch"
# raises = "AssertionError"
# match = "rates of epochs 2 to 4: expected [0.5, 0.5, 0.25], got [0.25, 0.25, 0.125]"
#
# [tool.repro.variants.fixed]
# about = "make StepLR without last_epoch, and load the states of both"
# source = "https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LRScheduler.html"
#
# [tool.repro.variants.milestones]
# outcome = "fails"
# about = "the same with MultiStepLR"
#
# [tool.repro.variants.from_base_rate]
# outcome = "passes"
# about = "the same schedule as a LambdaLR, which computes each rate from initial_lr"
# ///
"""A resume that tells the scheduler its epoch trains with a smaller learning rate than the run that it continues.

Symptom: the rate makes a step down where the run was resumed, and stays below its schedule. Silent.

Cause: the constructor of a scheduler takes a step, from `last_epoch` to the next. StepLR and MultiStepLR compute the new
rate from the one that the optimizer has, which after `load_state_dict` is that of the next epoch already, and multiply
it by gamma once more where that epoch is a milestone. ConstantLR divides by its factor once more where the next epoch
is `total_iters`: the rate is too high. The same was mended in CosineAnnealingLR, and in ExponentialLR, LinearLR,
PolynomialLR and MultiplicativeLR, which have it in torch 2.6 and no longer in 2.9; a schedule that is computed from
`initial_lr` never had it.

Fix: make the scheduler without `last_epoch`, then load the optimizer's and the scheduler's state.

Watch: no check tells it from a healthy training, since a rate that falls is what the schedule does.
"""

import sys

import torch
from torch.optim.lr_scheduler import LambdaLR, MultiStepLR, StepLR


def failing(states):
    optimizer = new_optimizer()
    optimizer.load_state_dict(states["optimizer"])
    return optimizer, StepLR(optimizer, step_size=2, gamma=0.5, last_epoch=1)


def fixed(states):
    optimizer = new_optimizer()
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    optimizer.load_state_dict(states["optimizer"])
    scheduler.load_state_dict(states["scheduler"])
    return optimizer, scheduler


def milestones(states):
    optimizer = new_optimizer()
    optimizer.load_state_dict(states["optimizer"])
    return optimizer, MultiStepLR(optimizer, milestones=[2, 4], gamma=0.5, last_epoch=1)


def from_base_rate(states):
    optimizer = new_optimizer()
    optimizer.load_state_dict(states["optimizer"])
    return optimizer, LambdaLR(optimizer, lambda epoch: 0.5 ** (epoch // 2), last_epoch=1)


VARIANTS = {v.__name__: v for v in (failing, fixed, milestones, from_base_rate)}


def new_optimizer():
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)


def rate_and_step(optimizer, scheduler):
    rate = optimizer.param_groups[0]["lr"]
    optimizer.step()
    scheduler.step()
    return rate


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    optimizer = new_optimizer()
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    for _ in range(2):  # epochs 0 and 1
        rate_and_step(optimizer, scheduler)
    resumed = VARIANTS[variant]({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()})
    got = [rate_and_step(*resumed) for _ in range(3)]  # 0.5 ** (epoch // 2)
    assert got == [0.5, 0.5, 0.25], f"rates of epochs 2 to 4: expected [0.5, 0.5, 0.25], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
