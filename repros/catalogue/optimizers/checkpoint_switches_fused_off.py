# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0029"
# title = "Loading an unfused checkpoint switches an optimizer's fused flag off, and GradScaler fails"
# kind = "bug"
# upstream.reports = []
# upstream.introduced_by = ["https://github.com/pytorch/pytorch/pull/88015"]
# upstream.related = ["https://github.com/ultralytics/ultralytics/pull/25375"]
# packages = ["torch"]
# exists = ["torch>=1.13"]
# exists_source = "https://github.com/pytorch/pytorch/pull/81705"
# home = "2026-07"
# strategies = ["fused_adamw"]
# devices = ["cpu", "cuda"]
#
# [tool.repro.variants.failing]
# about = "build the optimizer with fused=True and load a checkpoint of an unfused one"
# raises = "AssertionError"
# match = [
#     "Expected grad_scale and found_inf to be None",
#     "AssertionError", # up to torch 2.9 without a message
# ]
# frames = ["_single_tensor_adam", "_multi_tensor_adam", "_single_tensor_adamw", "_multi_tensor_adamw"]
#
# [tool.repro.variants.fixed]
# about = "write fused=True into the checkpoint's groups before loading"
# source = "https://github.com/ultralytics/ultralytics/pull/25375"
#
# [tool.repro.variants.flag_put_back]
# outcome = "passes"
# about = "set the groups' flag again after loading (enough where step counters are on the CPU anyway)"
# devices = ["cpu"]
#
# [tool.repro.variants.unfused]
# outcome = "passes"
# about = "go on with an unfused optimizer"
# ///
"""Turning on `fused=True` for a training that resumes ends in a bare assertion at the first scaled step.

Symptom: `AssertionError: Expected grad_scale and found_inf to be None` out of `scaler.step(optimizer)`; up to torch 2.9
the AssertionError has no message. Without a GradScaler nothing is raised: the optimizer is just no longer fused.

Cause: `Optimizer.load_state_dict` takes over the saved param groups whole, `fused` and `foreach` among them, and so
overrides the constructor's arguments. `_step_supports_amp_scaling`, which the constructor set for `fused=True`, stays.
`GradScaler.step` relies on it and passes `grad_scale` and `found_inf` to a step that is no longer fused, and that
asserts that both are None.

Fix: set the wanted flags in the checkpoint's groups before loading. Set after loading, they come too late on a GPU:
the fused kernel wants the step counters there, and loading moves them only for groups that are fused. Nobody has
reported the error to PyTorch; it was found here.
"""

import sys

import torch
from torch import nn


def new_training(device, fused):
    model = nn.Linear(1, 1).to(device)
    return model, torch.optim.AdamW(model.parameters(), fused=fused)


def failing(state, device):
    model, optimizer = new_training(device, fused=True)
    optimizer.load_state_dict(state)
    return model, optimizer


def fixed(state, device):
    model, optimizer = new_training(device, fused=True)
    for group in state["param_groups"]:
        group.update(fused=True, foreach=False)
    optimizer.load_state_dict(state)
    return model, optimizer


def flag_put_back(state, device):
    model, optimizer = failing(state, device)
    for group in optimizer.param_groups:
        group.update(fused=True, foreach=False)
    return model, optimizer


def unfused(state, device):
    model, optimizer = new_training(device, fused=False)
    optimizer.load_state_dict(state)
    return model, optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed, flag_put_back, unfused)}


def main(variant="failing", strategy="fused_adamw", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    device = torch.device(accelerator)
    scaler = torch.amp.GradScaler(accelerator)

    def step(model, optimizer):
        scaler.scale(model(torch.ones(1, 1, device=device)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        return optimizer.state_dict()

    checkpoint = step(*new_training(device, fused=False))
    step(*VARIANTS[variant](checkpoint, device))


if __name__ == "__main__":
    main(*sys.argv[1:])
