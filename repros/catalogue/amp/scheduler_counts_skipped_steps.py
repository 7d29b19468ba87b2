# /// script
# dependencies = ["torch>=2.3"]
#
# [tool.repro]
# id = "RPR-0079"
# title = "A scheduler advances for steps that GradScaler has skipped"
# kind = "by design"
# documented = "https://github.com/pytorch/pytorch/issues/55585"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/44511",
#     "https://github.com/pytorch/pytorch/issues/55585",
#     "https://github.com/huggingface/transformers/issues/11144",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/16228",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/18828",
#     "https://github.com/princeton-vl/RAFT/issues/104",
# ]
# packages = ["torch"]
# home = "2025-11"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "step the scheduler after each scaler.step; the scale has to fall twice first"
# raises = "AssertionError"
# match = "expected the learning rates [1.0, 0.75] of two steps, got [0.5, 0.25]"
#
# [tool.repro.variants.fixed]
# about = "step the scheduler where the scale has not fallen"
# source = "https://github.com/pytorch/pytorch/issues/55585"
#
# [tool.repro.variants.scale_unchanged]
# outcome = "fails"
# about = "step it where the scale is as before: a good step may raise the scale"
# raises = "AssertionError"
# match = "expected the learning rates [1.0, 0.75] of two steps, got [1.0, 1.0]"
# ///
"""A warm-up or a decay under mixed precision loses its first values.

Symptom: the first steps are made with a later learning rate than the schedule's first; "lr_scheduler.step() before
optimizer.step()" is warned of when the very first step is skipped, and nothing later.

Cause: where the scaled gradients are infinite, `scaler.step` calls no `optimizer.step` and `scaler.update` lowers the
scale. It does not say so; the loop's `scheduler.step()` counts the batch all the same.

Fix: compare the scale from before `scaler.update` with that after it, and step the scheduler unless it fell.

Watch: there is no check for it yet: one would have to follow the scaler's skips and the scheduler's steps together.
"""

import sys

import torch


def failing(before, after):
    return True


def fixed(before, after):
    return before <= after


def scale_unchanged(before, after):
    return before == after


VARIANTS = {v.__name__: v for v in (failing, fixed, scale_unchanged)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight = torch.nn.Parameter(torch.zeros(1, device=accelerator))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 4)
    scaler = torch.amp.GradScaler(accelerator, init_scale=4.0, growth_interval=1)
    rates = []
    # A float32 has room for 3.4e38: a gradient of 2e38 times a scale of 4 or 2 has none.
    for gradient in (2e38, 2e38, 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * gradient).sum()).backward()
        before, rate = weight.item(), optimizer.param_groups[0]["lr"]
        scaler.step(optimizer)
        scale = scaler.get_scale()
        scaler.update()
        if weight.item() != before:
            rates.append(rate)
        if VARIANTS[variant](scale, scaler.get_scale()):
            scheduler.step()
    assert rates == [1.0, 0.75], f"expected the learning rates [1.0, 0.75] of two steps, got {rates}"


if __name__ == "__main__":
    main(*sys.argv[1:])
