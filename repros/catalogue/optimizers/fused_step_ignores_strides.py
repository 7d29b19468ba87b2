# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0030"
# title = "A fused optimizer on the CPU pairs weights and momenta by their place in memory"
# kind = "bug"
# upstream.reports = []
# upstream.related = [
#     "https://github.com/pytorch/pytorch/issues/106951",
#     "https://github.com/pytorch/pytorch/issues/126585",
#     "https://github.com/pytorch/pytorch/issues/110758",
# ]
# packages = ["torch"]
# exists = ["torch>=2.4"]
# exists_source = "https://docs.pytorch.org/docs/2.3/generated/torch.optim.AdamW.html"
# home = "2026-07"
# strategies = ["fused_sgd"]
# silent = true
# finds = ["state_strides"]
#
# [tool.repro.variants.failing]
# about = "resume in channels_last from a checkpoint of a training in the default layout"
# raises = "AssertionError"
# match = "expected weights [-2.0, -4.0, -6.0, -8.0], got [-2.0, -5.0, -5.0, -8.0]"
#
# [tool.repro.variants.fixed]
# about = "give the loaded momenta the layout of their parameters"
#
# [tool.repro.variants.unfused]
# outcome = "passes"
# about = "switch fused off"
#
# [tool.repro.variants.layout_kept]
# outcome = "passes"
# about = "go on in the layout of the checkpoint"
# ///
"""Turning on channels_last for a training that resumes updates the weights with each other's momenta.

Symptom: a step back in the loss after the resume, and optimizer states that stay mixed up. Silent on the CPU; CUDA's
Adam refuses with "params, grads, exp_avgs, and exp_avg_sqs must have same dtype, device, and layout".

Cause: the CPU kernels behind `fused=True` (ATen's FusedSGDKernel.cpp, FusedAdamKernel.cpp) walk the memory of weight,
gradient and state side by side from `data_ptr()` and never look at strides. `Optimizer.load_state_dict` casts dtype
and device but keeps a state's own layout: beside a channels_last weight, a contiguous momentum is out of order. Any
other mismatch does the same, such as a `.grad` that was set by hand to a transposed tensor. The reports upstream are
of CUDA's refusal; nobody has reported the wrong update on the CPU, which was found here.

Fix: copy each state into a tensor of its parameter's layout after loading, or leave `fused` off.
"""

import copy
import sys

import torch
from torch import nn


def new_training(fused=True):
    model = nn.Conv2d(2, 1, kernel_size=(1, 2), bias=False)
    nn.init.zeros_(model.weight)
    # The momentum is the sum of all gradients.
    return model, torch.optim.SGD(model.parameters(), lr=1.0, momentum=1.0, fused=fused)


def failing(state):
    model, optimizer = new_training()
    model.to(memory_format=torch.channels_last)
    optimizer.load_state_dict(state)
    return model, optimizer


def fixed(state):
    model, optimizer = new_training()
    model.to(memory_format=torch.channels_last)
    optimizer.load_state_dict(state)
    for weight, buffers in optimizer.state.items():
        for name, value in buffers.items():
            buffers[name] = torch.empty_like(weight).copy_(value)
    return model, optimizer


def unfused(state):
    model, optimizer = new_training(fused=False)
    model.to(memory_format=torch.channels_last)
    state["param_groups"][0]["fused"] = False
    optimizer.load_state_dict(state)
    return model, optimizer


def layout_kept(state):
    model, optimizer = new_training()
    optimizer.load_state_dict(state)
    return model, optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed, unfused, layout_kept)}


def step(model, optimizer):
    # One window of the kernel's own size: the gradient of each weight is the input beside it, 1 to 4.
    optimizer.zero_grad()
    model(torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]])).sum().backward()
    optimizer.step()


def main(variant="failing", strategy="fused_sgd", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, optimizer = new_training()
    step(model, optimizer)
    model, optimizer = VARIANTS[variant](copy.deepcopy(optimizer.state_dict()))
    step(model, optimizer)
    # From zero, minus the momentum: the gradient of the first training plus the same gradient once more.
    got = model.weight.flatten().tolist()
    assert got == [-2.0, -4.0, -6.0, -8.0], f"expected weights [-2.0, -4.0, -6.0, -8.0], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
