# /// script
# dependencies = ["torch>=2.3"]
#
# [tool.repro]
# id = "RPR-0067"
# title = "Gradients that are clipped before GradScaler unscales them all but vanish"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping"
# upstream.reports = [
#     "https://github.com/pytorch/examples/issues/1196",
#     "https://github.com/allenai/allennlp/pull/5426",
#     "https://github.com/harubaru/waifu-diffusion/issues/64",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/9599",
#     "https://github.com/milesial/Pytorch-UNet/issues/468",
#     "https://github.com/rwth-i6/returnn/pull/1595",
#     "https://github.com/TorchSSL/TorchSSL/pull/59",
#     "https://github.com/pytorch/pytorch/issues/40907",
#     "https://github.com/victorchall/EveryDream2trainer/pull/175",
# ]
# packages = ["torch"]
# home = "2025-11"
# devices = ["cpu", "cuda", "sim"]
# silent = true
# finds = ["clipped_while_scaled"]
#
# [tool.repro.variants.failing]
# about = "clip the gradients to a norm of 1 right after the backward"
# raises = "AssertionError"
# match = "expected a step of 1.0, the limit of the norm, got 0.001"
#
# [tool.repro.variants.fixed]
# about = "unscale the gradients, then clip them"
# source = "https://pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping"
#
# [tool.repro.variants.scaled_limit]
# outcome = "passes"
# about = "clip to the limit times the scale"
# source = "https://github.com/suvojit-0x55aa/mixed-precision-pytorch/issues/1"
# ///
"""Mixed precision with gradient clipping learns very slowly.

Symptom: the loss falls far more slowly with GradScaler and clipping than without one of them. Silent.

Cause: after `scaler.scale(loss).backward()` the gradients are multiplied by the scale, 65536 at first. `clip_grad_norm_`
compares these with a limit that was meant for the true ones and shortens them to it; `scaler.step` then divides by the
scale. The step has a norm of limit / scale at most. Adam divides by the size of the gradients and learns as fast as
before, but all its gradients are clipped to one norm, whatever the limit. RPR-0107 is the same with Lightning's manual
optimisation.

Fix: `scaler.unscale_(optimizer)` before the clipping; `scaler.step` does not unscale a second time.
"""

import sys

import torch
from torch.nn.utils import clip_grad_norm_

SCALE = 1024.0


def failing(scaler, optimizer, weight):
    clip_grad_norm_([weight], 1.0)


def fixed(scaler, optimizer, weight):
    scaler.unscale_(optimizer)
    clip_grad_norm_([weight], 1.0)


def scaled_limit(scaler, optimizer, weight):
    clip_grad_norm_([weight], 1.0 * scaler.get_scale())


VARIANTS = {v.__name__: v for v in (failing, fixed, scaled_limit)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight = torch.nn.Parameter(torch.zeros(1, device=accelerator))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler(accelerator, init_scale=SCALE)
    scaler.scale((weight * -2.0).sum()).backward()  # a gradient of -2, of which clipping leaves -1
    VARIANTS[variant](scaler, optimizer, weight)
    scaler.step(optimizer)
    scaler.update()
    got = round(weight.item(), 3)
    assert got == 1.0, f"expected a step of 1.0, the limit of the norm, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
