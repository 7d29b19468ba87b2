# /// script
# dependencies = ["torch>=2.2"]
#
# [tool.repro]
# id = "RPR-0054"
# title = "Adam makes weights in float16 NaN: its eps is zero there"
# kind = "limitation"
# documented = "https://github.com/pytorch/pytorch/issues/8860"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/8860",
#     "https://github.com/afiaka87/glide-finetune/issues/5",
# ]
# packages = ["torch"]
# home = "2024-03"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "one step with the default eps of 1e-8 on a gradient of zero"
# raises = "AssertionError"
# match = "expected the weight 1.0 after a step without gradient, got nan"
#
# [tool.repro.variants.fixed]
# about = "an eps that float16 can hold"
# source = "https://github.com/pytorch/pytorch/issues/8860"
#
# [tool.repro.variants.float32]
# outcome = "passes"
# about = "weights in float32"
# ///
"""After `model.half()` one step of Adam makes weights NaN.

Symptom: the loss is NaN from the second batch on when the model's own weights are float16; with SGD it is not. Silent.

Cause: Adam divides the first moment by `sqrt(second) + eps`. float16 begins at 6e-8: the default eps of 1e-8 is zero,
and so is the second moment of a gradient below 0.008. For a gradient of zero that is 0 / 0.

Fix: keep the weights in float32 and use autocast; or an eps of 1e-4.

Watch: `weights_not_finite` finds it, whatever the cause is, and so cannot name it;
`--first-nan` names the step that made it so, and that its eps is 0 in float16.
"""

import sys

import torch


def failing(device):
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float16, device=device))
    return weight, torch.optim.Adam([weight])


def fixed(device):
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float16, device=device))
    return weight, torch.optim.Adam([weight], eps=1e-4)


def float32(device):
    weight = torch.nn.Parameter(torch.ones(1, device=device))
    return weight, torch.optim.Adam([weight])


VARIANTS = {v.__name__: v for v in (failing, fixed, float32)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight, optimizer = VARIANTS[variant](accelerator)
    for _ in range(2):
        optimizer.zero_grad()
        (weight * 0.0).sum().backward()
        optimizer.step()
    got = weight.item()
    assert got == 1.0, f"expected the weight 1.0 after a step without gradient, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
