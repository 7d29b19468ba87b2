# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0028"
# title = "An optimizer state that is loaded before the model is moved stays on the CPU"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.cuda"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/2830",
#     "https://github.com/pytorch/pytorch/issues/8741",
#     "https://github.com/rasbt/LLMs-from-scratch/issues/232",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19225",
# ]
# packages = ["torch"]
# home = "2026-07"
# strategies = ["adamw", "fused_adamw"]
# devices = ["cuda", "sim"]
#
# [tool.repro.variants.failing]
# about = "load the optimizer's state, then move the model"
# finds = ["state_device", "crash"]
# strategies = ["adamw"]
# raises = "RuntimeError"
# match = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!$"
# frames = ["_single_tensor_adam", "_multi_tensor_adam", "_single_tensor_adamw", "_multi_tensor_adamw"]
#
# [tool.repro.variants.fused]
# outcome = "fails"
# about = "the same with fused=True, whose kernel names the state"
# finds = ["state_device", "crash"]
# strategies = ["fused_adamw"]
# requires = ["torch>=2.4"]
# raises = "RuntimeError"
# match = [
#     "got exp_avgs is on cpu, different from other tensors on cuda:0",
#     "when checking argument for argument exp_avgs in method wrapper_CUDA___fused_adamw_",
# ]
#
# [tool.repro.variants.fixed]
# strategies = ["adamw"]
# about = "move the model, then load the optimizer's state"
# source = "https://github.com/pytorch/pytorch/issues/2830"
#
# [tool.repro.variants.moved_by_hand]
# outcome = "passes"
# strategies = ["adamw"]
# about = "move every tensor of the optimizer's state after the model"
# source = "https://github.com/pytorch/pytorch/issues/8741"
#
# [tool.repro.variants.mapped_to_device]
# outcome = "fails"
# strategies = ["adamw"]
# about = "read the checkpoint with map_location set to the device that trains"
# finds = ["state_device", "crash"]
# claim = "the state has to be read with map_location=device, and stays on that device"
# source = "https://github.com/FoundationVision/VAR/issues/127"
# ///
"""A resume that restores everything and then moves the model to its device dies at the first step.

Symptom: `RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and
cpu!` out of `optimizer.step()`. The fused kernel says which tensor it is: `got exp_avgs is on cpu, different from
other tensors on cuda:0`, before torch 2.8 `when checking argument for argument exp_avgs`.

Cause: `Optimizer.load_state_dict` casts every state to the device on which its parameter is *at that time*, the CPU.
`Module.to` then moves parameters by setting their `.data`; it does not know the optimizer, and optimizers have no `to`.
A first training works because, with nothing loaded, the optimizer creates its states on the right device. The
documentation of `Module.cuda` asks for the move before the optimizer is made; that of `torch.optim` once did.

Fix: move the model first, load afterwards; or move the state by hand.

Apart: RPR-0004 names `state_steps`, with everything else on the right device, and is cured by `map_location` and by
torch 2.1. Here every release fails, the fused kernel names `exp_avgs`, and `map_location` does nothing: loading casts
to the CPU again. In RPR-0002 the two devices meet in a layer's forward, not in an optimizer.
"""

import os
import sys
import tempfile

import torch
from torch import nn


def new_training(strategy):
    model = nn.Linear(2, 1)
    return model, torch.optim.AdamW(model.parameters(), fused=strategy == "fused_adamw")


def failing(strategy, path, device):
    model, optimizer = new_training(strategy)
    optimizer.load_state_dict(torch.load(path, map_location="cpu"))
    model.to(device)
    return model, optimizer


def fixed(strategy, path, device):
    model, optimizer = new_training(strategy)
    model.to(device)
    optimizer.load_state_dict(torch.load(path, map_location="cpu"))
    return model, optimizer


def fused(strategy, path, device):
    return failing(strategy, path, device)


def moved_by_hand(strategy, path, device):
    model, optimizer = failing(strategy, path, device)
    for state in optimizer.state.values():
        state.update({name: value.to(device) for name, value in state.items()})
    return model, optimizer


def mapped_to_device(strategy, path, device):
    model, optimizer = new_training(strategy)
    optimizer.load_state_dict(torch.load(path, map_location=device))
    model.to(device)
    return model, optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed, fused, moved_by_hand, mapped_to_device)}


def step(model, optimizer, device):
    model(torch.ones(4, 2, device=device)).sum().backward()
    optimizer.step()


def main(variant="failing", strategy="adamw", accelerator="cuda"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    device = torch.device(accelerator, 0)
    model, optimizer = new_training(strategy)
    step(model.to(device), optimizer, device)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "optimizer.pt")
        torch.save(optimizer.state_dict(), path)
        step(*VARIANTS[variant](strategy, path, device), device)


if __name__ == "__main__":
    main(*sys.argv[1:])
