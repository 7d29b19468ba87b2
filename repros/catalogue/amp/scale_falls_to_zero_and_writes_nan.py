# /// script
# dependencies = ["torch>=2.3"]
#
# [tool.repro]
# id = "RPR-0069"
# title = "GradScaler's scale falls to zero, and a good batch makes the weights NaN"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/deepinsight/insightface/issues/2262",
#     "https://github.com/lpiccinelli-eth/UniK3D/issues/16",
# ]
# packages = ["torch"]
# home = "2025-11"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "200 batches with gradients of NaN, then a good one"
# raises = "AssertionError"
# match = "expected the weight 0.0 after a step with the gradient 1, got nan"
#
# [tool.repro.variants.fixed]
# about = "set the scale to a minimum where it has fallen below"
#
# [tool.repro.variants.stopped]
# outcome = "passes"
# contrast = true
# about = "the good batch after 10 bad ones: the scale is 64"
# ///
"""A run of bad batches ends in weights of NaN, though every step with them was skipped.

Symptom: after a few hundred infinite or NaN gradients in a row the loss is NaN for good, even when the data is good
again. Silent.

Cause: `GradScaler` halves its scale at each skipped step, without a limit. From 65536 the 166th makes it 0 in float32.
A good loss times 0 gives gradients of 0, and unscaling multiplies these with 1 / 0: NaN. The check for infinite
gradients looks at the scaled ones, which are finite, so the step is made.

Fix: end the training, or `scaler.update(new_scale=...)`, when the scale is below a minimum.

Watch: `scaler_skips_steps` finds the steps that are skipped, whatever their cause is, and so cannot name it;
`--first-nan` names the step whose loss was first so, and that skipping does not end it.
"""

import sys

import torch


def failing(scaler, batch):
    scaler.update()


def fixed(scaler, batch):
    scaler.update()
    if scaler.get_scale() < 1.0:
        scaler.update(new_scale=1.0)


def stopped(scaler, batch):
    scaler.update()


VARIANTS = {v.__name__: v for v in (failing, fixed, stopped)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight = torch.nn.Parameter(torch.ones(1, device=accelerator))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler(accelerator)
    bad = 10 if variant == "stopped" else 200
    for batch in range(bad + 1):
        optimizer.zero_grad()
        scaler.scale((weight * (float("nan") if batch < bad else 1.0)).sum()).backward()
        scaler.step(optimizer)
        VARIANTS[variant](scaler, batch)
    got = weight.item()
    assert got == 0.0, f"expected the weight 0.0 after a step with the gradient 1, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
