# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0181"
# title = "A scheduler made with last_epoch refuses an optimizer without initial_lr"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LRScheduler.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/160626",
#     "https://github.com/real-stanford/universal_manipulation_interface/issues/70",
#     "https://github.com/akamaster/pytorch_resnet_cifar10/pull/14",
#     "https://github.com/vllm-project/speculators/issues/1048",
#     "https://github.com/mozilla/TTS/issues/57",
# ]
# packages = ["torch"]
# home = "2023-12"
#
# [tool.repro.variants.failing]
# about = "make the optimizer, make StepLR with last_epoch, load the optimizer"
# raises = "KeyError"
# match = "param 'initial_lr' is not specified in param_groups[0] when resuming"
#
# [tool.repro.variants.fixed]
# about = "load the optimizer first: its state has initial_lr"
# source = "https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LRScheduler.html"
#
# [tool.repro.variants.both_loaded]
# outcome = "passes"
# about = "without last_epoch, and load the states of both afterwards"
# source = "https://github.com/vllm-project/speculators/pull/1049"
#
# [tool.repro.variants.initial_lr_by_hand]
# outcome = "fails"
# about = "initial_lr in the new optimizer's groups, whose rate StepLR takes for the present one"
# raises = "AssertionError"
# match = "rates of epochs 3 and 4: expected [0.5, 0.25], got [1.0, 0.5]"
# source = "https://github.com/pytorch/pytorch/issues/160626"
# claim = "the groups need the key, so that the schedule goes on where it was"
#
# [tool.repro.variants.by_hand_for_lambda]
# outcome = "passes"
# about = "the same with LambdaLR, which computes each rate from initial_lr"
# source = "https://github.com/real-stanford/universal_manipulation_interface/issues/70"
#
# [tool.repro.variants.new_run]
# outcome = "fails"
# about = "last_epoch=0 in a run that begins"
# source = "https://github.com/mozilla/TTS/issues/57"
# claim = "0 is the number of the first epoch"
# ///
"""A resume that tells the scheduler its epoch and ends before the first step.

Symptom: `KeyError: param 'initial_lr' is not specified in param_groups[0]` where the scheduler is made. A run from the
start works, because `last_epoch` is -1 there.

Cause: a scheduler stores its base rates as `initial_lr` in the optimizer's groups. With `last_epoch` of 0 or more it
expects to find them, as in an optimizer whose state was loaded. They are absent from a new optimizer, and from a state
that was saved before the first scheduler was made. `torch.distributed.checkpoint.state_dict.set_optimizer_state_dict`
sets options of the groups that the new optimizer lacks only without `full_state_dict`. With it the load itself raises
`KeyError: 'param_groups.0.initial_lr'`; with `broadcast_from_rank0`, too, rank 0 alone gets the key (2.9.1 and 2.15).

Fix: leave `last_epoch` alone and load the scheduler's state, which also holds for full state dicts if the scheduler is
made before both loads. Or load the optimizer before the scheduler is made: StepLR and MultiStepLR then decay once more
if the run is resumed at a milestone (RPR-0182). The key alone, added by hand, gives the right rates with LambdaLR;
StepLR, MultiStepLR, ExponentialLR and MultiplicativeLR multiply the rate that the optimizer has, which is the one of
epoch 0.
"""

import sys

import torch
from torch.optim.lr_scheduler import LambdaLR, StepLR


def new_optimizer(**options):
    return torch.optim.SGD([{"params": [torch.zeros(1, requires_grad=True)], **options}], lr=1.0)


def failing(states):
    optimizer = new_optimizer()
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5, last_epoch=2)
    optimizer.load_state_dict(states["optimizer"])
    return optimizer, scheduler


def fixed(states):
    optimizer = new_optimizer()
    optimizer.load_state_dict(states["optimizer"])
    return optimizer, StepLR(optimizer, step_size=2, gamma=0.5, last_epoch=2)


def both_loaded(states):
    optimizer = new_optimizer()
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    optimizer.load_state_dict(states["optimizer"])
    scheduler.load_state_dict(states["scheduler"])
    return optimizer, scheduler


def initial_lr_by_hand(states):
    optimizer = new_optimizer(initial_lr=1.0)
    return optimizer, StepLR(optimizer, step_size=2, gamma=0.5, last_epoch=2)


def by_hand_for_lambda(states):
    optimizer = new_optimizer(initial_lr=1.0)
    return optimizer, LambdaLR(optimizer, lambda epoch: 0.5 ** (epoch // 2), last_epoch=2)


def new_run(states):
    optimizer = new_optimizer()
    return optimizer, StepLR(optimizer, step_size=2, gamma=0.5, last_epoch=0)


VARIANTS = {v.__name__: v for v in (failing, fixed, both_loaded, initial_lr_by_hand, by_hand_for_lambda, new_run)}


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
    for _ in range(3):  # epochs 0, 1 and 2
        rate_and_step(optimizer, scheduler)
    states = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    resumed = VARIANTS[variant](states)
    got = [rate_and_step(*resumed) for _ in range(2)]  # 0.5 ** (epoch // 2)
    assert got == [0.5, 0.25], f"rates of epochs 3 and 4: expected [0.5, 0.25], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
