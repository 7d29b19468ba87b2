# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0083"
# title = "A new learning rate or schedule is overwritten by the checkpoint"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html"
# upstream.reports = [
#     "https://github.com/pytorch/examples/issues/816",
#     "https://github.com/pytorch/pytorch/issues/156846",
#     "https://github.com/bmaltais/kohya_ss/issues/1924",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "resume with a tenth of the learning rate, and load both states"
# raises = "AssertionError"
# match = "expected the learning rate 0.0729, got 0.729"
#
# [tool.repro.variants.fixed]
# about = "set the groups' rates and the scheduler's base rates after loading"
#
# [tool.repro.variants.set_on_the_optimizer]
# outcome = "fails"
# about = "set the groups' rates alone: the scheduler computes the next from its own base rates"
#
# [tool.repro.variants.scheduler_not_loaded]
# outcome = "fails"
# about = "load the optimizer's state alone, and make the scheduler anew: it begins at the old base rate"
# raises = "AssertionError"
# match = "expected the learning rate 0.0729, got 0.9"
# ///
"""A run that is resumed with other hyperparameters trains with the old ones.

Symptom: the new learning rate, weight decay or length of the schedule in the configuration has no effect after a
resume. A new length has one with LambdaLR alone, whose functions are not in the checkpoint. Silent.

Cause: `Optimizer.load_state_dict` takes the parameter groups of the checkpoint, with every option in them, `initial_lr`
too; `LRScheduler.load_state_dict` replaces the scheduler's whole `__dict__`, `base_lrs` included. What the program gave
to the constructors is gone.

Fix: change `lr` and `initial_lr` of the groups and `base_lrs` of the scheduler after both were loaded.

Watch: no check tells it from a healthy resume, since most resumes want the settings of the checkpoint.
"""

import sys

import torch
from torch.optim.lr_scheduler import LambdaLR


def failing(optimizer, scheduler, states):
    optimizer.load_state_dict(states[0])
    scheduler.load_state_dict(states[1])


def fixed(optimizer, scheduler, states):
    failing(optimizer, scheduler, states)
    for group in optimizer.param_groups:
        group["initial_lr"] = 0.1
    scheduler.base_lrs = [0.1]


def set_on_the_optimizer(optimizer, scheduler, states):
    failing(optimizer, scheduler, states)
    for group in optimizer.param_groups:
        group["lr"] = 0.1


def scheduler_not_loaded(optimizer, scheduler, states):
    optimizer.load_state_dict(states[0])
    scheduler.__init__(optimizer, scheduler.lr_lambdas[0], last_epoch=-1)


VARIANTS = {v.__name__: v for v in (failing, fixed, set_on_the_optimizer, scheduler_not_loaded)}


def make(rate, accelerator):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1, device=accelerator))], lr=rate)
    return optimizer, LambdaLR(optimizer, lambda epoch: 0.9**epoch)


def epochs(optimizer, scheduler, number):
    for _ in range(number):
        optimizer.step()
        scheduler.step()


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    first = make(1.0, accelerator)
    epochs(*first, 2)
    second = make(0.1, accelerator)
    VARIANTS[variant](*second, [part.state_dict() for part in first])
    epochs(*second, 1)
    got = round(second[0].param_groups[0]["lr"], 4)  # the third epoch of 0.1 * 0.9^epoch
    assert got == 0.0729, f"expected the learning rate 0.0729, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
