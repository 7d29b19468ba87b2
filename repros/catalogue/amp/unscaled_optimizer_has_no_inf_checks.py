# /// script
# dependencies = ["torch>=2.3"]
#
# [tool.repro]
# id = "RPR-0052"
# title = "GradScaler refuses to step an optimizer none of whose parameters has a gradient"
# kind = "misuse"
# documented = "https://docs.pytorch.org/docs/stable/amp.html"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/328",
#     "https://github.com/huggingface/transformers/issues/24003",
#     "https://github.com/hiyouga/ChatGLM-Efficient-Tuning/issues/34",
#     "https://github.com/thisserand/alpaca-lora-finetune-language/issues/4",
# ]
# packages = ["torch"]
# home = "2026-07"
# strategies = ["adamw"]
# devices = ["cpu", "cuda", "sim"]
# deadline = 60
#
# [tool.repro.variants.failing]
# about = "makes a new tensor of the loss's value, which requires a gradient"
# raises = "AssertionError"
# match = "No inf checks were recorded for this optimizer."
#
# [tool.repro.variants.fixed]
# about = "goes on with the loss itself, whose graph leads to the weight"
#
# [tool.repro.variants.old_parameters]
# outcome = "fails"
# about = "makes the optimizer before the model's parameters are replaced"
# claim = "the optimizer may be made first, since it steps what it was given"
# source = "https://github.com/huggingface/accelerate/issues/328"
#
# [tool.repro.variants.made_last]
# outcome = "passes"
# about = "makes the optimizer once the model has its last parameters"
# source = "https://github.com/huggingface/accelerate/issues/328"
#
# [tool.repro.variants.check_avoided]
# outcome = "fails"
# about = "calls optimizer.step() without the scaler"
# claim = "without the scaler's check the training goes on"
# source = "https://github.com/SheldonTsui/GOF_NeurIPS2021/issues/2"
# raises = "AssertionError"
# match = "expected a weight below 1.0 after the step, got 1.0"
# ///
"""The first step of a mixed-precision training meets an optimizer whose parameters the loss does not reach.

Symptom: `AssertionError: No inf checks were recorded for this optimizer.` from `scaler.step(optimizer)`. The words say
nothing about the cause.

Cause: `GradScaler.step` unscales the gradients of the optimizer's parameters and records for each device whether it met
an inf. If every `grad` is None, it records nothing. Often the loss was computed anew from a number or a detached
tensor and given `requires_grad=True`, which lets `backward()` pass; or the optimizer holds parameters that the model
no longer has, because it was quantised, wrapped or loaded anew afterwards (`model.to(device)` keeps them); or the
parameters are those of a frozen adapter, over inputs that require gradients (RPR-0141).

A fused optimizer passes `scaler.step`, and `scaler.update()` raises "No inf checks were recorded prior to update."; if
another optimizer of the same scaler has gradients, nothing is raised.

Fix: keep the graph from the loss to the parameters, and make the optimizer last. Leaving the scaler out only hides that
nothing is trained.
"""

import sys

import torch


def failing(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    loss = model.weight.sum()
    return optimizer, torch.tensor(loss.item(), device=loss.device, requires_grad=True)


def fixed(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    return optimizer, model.weight.sum()


def old_parameters(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model.weight = torch.nn.Parameter(model.weight.detach().clone())
    return optimizer, model.weight.sum()


def made_last(model):
    model.weight = torch.nn.Parameter(model.weight.detach().clone())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    return optimizer, model.weight.sum()


def check_avoided(model):
    return failing(model)


VARIANTS = {v.__name__: v for v in (failing, fixed, old_parameters, made_last, check_avoided)}


def main(variant="failing", strategy="adamw", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = torch.nn.Linear(1, 1, bias=False, device=accelerator)
    torch.nn.init.ones_(model.weight)
    optimizer, loss = VARIANTS[variant](model)
    scaler = torch.amp.GradScaler(accelerator)
    if variant == "check_avoided":
        loss.backward()
        optimizer.step()
    else:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    # AdamW's first step moves a weight by the learning rate against its gradient, which is 1.
    got = model.weight.item()
    assert got < 1.0, f"expected a weight below 1.0 after the step, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
