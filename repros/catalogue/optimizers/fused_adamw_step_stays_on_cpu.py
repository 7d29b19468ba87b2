# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0004"
# title = "Fused AdamW's step counter stays on the CPU after a resume"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/FoundationVision/VAR/issues/127",
#     "https://github.com/pytorch/pytorch/issues/104767",
#     "https://github.com/pytorch/pytorch/issues/103256",
#     "https://github.com/huggingface/transformers/issues/24708",
#     "https://github.com/huggingface/transformers/issues/26171",
# ]
# upstream.fixed_by = ["https://github.com/pytorch/pytorch/pull/102619"]
# packages = ["torch"]
# affected = ["torch>=2.0,<2.1"]
# requires = ["torch>=2.0"]
# exists = ["torch>=1.13"]
# exists_source = "https://github.com/pytorch/pytorch/pull/81705"
# home = "2023-05"
# strategies = ["fused_adamw"]
# devices = ["cuda", "sim"]
#
# [tool.repro.variants.failing]
# about = "resume from a checkpoint loaded with map_location='cpu'"
# finds = ["state_step_device", "crash"]
# raises = "RuntimeError"
# match = "when checking argument for argument state_steps in method wrapper_CUDA___fused_adamw_"
# frames = ["_fused_adamw"]
#
# [tool.repro.variants.fixed]
# about = "move every step counter to its parameter's device after loading (or torch 2.1)"
# source = "https://github.com/pytorch/pytorch/pull/102619"
#
# [tool.repro.variants.mapped_to_own_device]
# outcome = "passes"
# about = "load with map_location set to the device that trains"
# source = "https://github.com/FoundationVision/VAR/issues/127"
#
# [tool.repro.variants.deleted_checkpoint]
# outcome = "fails"
# about = "train from scratch, save, and resume from that"
# finds = ["state_step_device", "crash"]
# claim = "delete the old checkpoint and start again"
# source = "https://github.com/FoundationVision/VAR/issues/127"
#
# [tool.repro.variants.mapped_to_first_device]
# outcome = "passes"
# about = "load with map_location naming device 0: right on one device, and for rank 0 alone on several"
# source = "https://docs.pytorch.org/docs/stable/generated/torch.load.html"
#
# [tool.repro.variants.optimizer_after_move]
# outcome = "fails"
# about = "build the optimizer once the model has been moved, which the failing code does already"
# finds = ["state_step_device", "crash"]
# claim = "the optimizer has to be built after the model was moved to its device"
# source = "https://blog.gitcode.com/f78ebc3bb4ad51e284e04e597e07c044.html"
#
# [tool.repro.variants.scaler_saved]
# outcome = "fails"
# about = "save and load the GradScaler's state too, and step with the scaler"
# finds = ["state_step_device", "crash"]
# claim = "the GradScaler's state has to be saved with the optimizer's"
# source = "https://blog.gitcode.com/f78ebc3bb4ad51e284e04e597e07c044.html"
# ///
"""Resuming a training with a fused optimizer dies at the first step; the first training was fine.

Symptom: `RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
(when checking argument for argument state_steps in method wrapper_CUDA___fused_adamw_)`.

Cause: `Optimizer.load_state_dict` of torch 2.0 moves every loaded state to its parameter's device except `step`,
which the unfused optimizers keep on the CPU. The fused kernel wants it beside the parameters, and a checkpoint read
with `map_location="cpu"` has it on the CPU. A GradScaler that calls the step appears in the traceback but is not the
cause. A new checkpoint fails at its first resume like the old one. VAR's README allows torch 2.0, its
requirements.txt asks for torch 2.1, which is free of this.

Fix: torch 2.1, or move `step` after loading, or load with each rank's own device as `map_location`. `"cuda:0"`
there is right for rank 0 alone.
"""

import os
import sys
import tempfile

import torch
from torch import nn


def train(device, state=None):
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    if state is not None:
        optimizer.load_state_dict(state)
    return model, optimizer


def step(model, optimizer, device):
    model(torch.ones(4, 2, device=device)).sum().backward()
    optimizer.step()


def resume(device, path, map_location):
    return train(device, torch.load(path, map_location=map_location))


def failing(device, path):
    model, optimizer = resume(device, path, "cpu")
    step(model, optimizer, device)


def fixed(device, path):
    model, optimizer = resume(device, path, "cpu")
    for parameter, state in optimizer.state.items():
        state["step"] = state["step"].to(parameter.device)
    step(model, optimizer, device)


def mapped_to_own_device(device, path):
    model, optimizer = resume(device, path, device)
    step(model, optimizer, device)


def mapped_to_first_device(device, path):
    model, optimizer = resume(device, path, f"{device.type}:0")
    step(model, optimizer, device)


def optimizer_after_move(device, path):
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    optimizer.load_state_dict(torch.load(path, map_location="cpu"))
    step(model, optimizer, device)


def scaler_saved(device, path):
    scaler = torch.cuda.amp.GradScaler()
    scaler.load_state_dict(torch.load(path, map_location="cpu")["scaler"])
    model, optimizer = resume(device, path, "cpu")
    scaler.scale(model(torch.ones(4, 2, device=device)).sum()).backward()
    scaler.step(optimizer)


def deleted_checkpoint(device, path):
    os.remove(path)
    save_first_training(device, path)
    failing(device, path)


def save_first_training(device, path):
    model, optimizer = train(device)
    step(model, optimizer, device)
    torch.save({**optimizer.state_dict(), "scaler": torch.cuda.amp.GradScaler().state_dict()}, path)


VARIANTS = {
    v.__name__: v
    for v in (
        failing,
        fixed,
        mapped_to_own_device,
        mapped_to_first_device,
        deleted_checkpoint,
        optimizer_after_move,
        scaler_saved,
    )
}


def main(variant="failing", strategy="fused_adamw", accelerator="cuda"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    device = torch.device(accelerator, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "optimizer.pt")
        save_first_training(device, path)
        VARIANTS[variant](device, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
