# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0186"
# title = "An in-place ReLU at the start of a residual branch changes what the shortcut adds"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.ReLU.html"
# upstream.reports = [
#     "https://github.com/rosinality/vq-vae-2-pytorch/issues/60",
#     "https://github.com/iduta/iresnet/pull/2",
# ]
# upstream.related = ["https://github.com/kuangliu/pytorch-cifar/issues/9"]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "x + branch(x), where the branch begins with ReLU(inplace=True)"
# raises = "AssertionError"
# match = "expected the outputs [-1.0, 4.0], got [0.0, 4.0]"
#
# [tool.repro.variants.fixed]
# about = "ReLU() at the start of the branch"
# source = "https://github.com/rosinality/vq-vae-2-pytorch/issues/60"
#
# [tool.repro.variants.cloned]
# outcome = "passes"
# about = "the branch gets x.clone()"
#
# [tool.repro.variants.shortcut_first]
# outcome = "fails"
# about = "shortcut = x before the branch: another name of the same tensor"
#
# [tool.repro.variants.behind_a_layer]
# outcome = "passes"
# contrast = true
# about = "ReLU(inplace=True) behind the branch's layer, whose output nothing else uses"
# ///
"""A residual block that passes on relu(x) in the place of x.

Symptom: a pre-activation network trains, but worse than the paper's. The shortcut has no negative value. Silent, as long
as nothing before the block needs x in its backward, as a sigmoid does: then it is "one of the variables needed for
gradient computation has been modified by an inplace operation".

Cause: `ReLU(inplace=True)` writes into its input. The input of a branch that begins with it is x itself, and the
shortcut adds x after that write. Autograd records the write, so the gradients are right for the changed function.

Fix: no in-place operation on a tensor that something else reads: `ReLU()` at the start of a branch. Behind a layer of
the branch it may stay.

Watch: there is no check for it yet: a write to a tensor that is read again is what many healthy programs do on purpose.
"""

import sys

import torch
from torch import nn


def layer(device):
    linear = nn.Linear(1, 1, bias=False, device=device)
    nn.init.ones_(linear.weight)
    return linear


def failing(x):
    branch = nn.Sequential(nn.ReLU(inplace=True), layer(x.device))
    return branch(x) + x


def fixed(x):
    branch = nn.Sequential(nn.ReLU(), layer(x.device))
    return branch(x) + x


def cloned(x):
    branch = nn.Sequential(nn.ReLU(inplace=True), layer(x.device))
    return branch(x.clone()) + x


def shortcut_first(x):
    branch = nn.Sequential(nn.ReLU(inplace=True), layer(x.device))
    shortcut = x
    return branch(x) + shortcut


def behind_a_layer(x):
    branch = nn.Sequential(layer(x.device), nn.ReLU(inplace=True))
    return branch(x) + x


VARIANTS = {v.__name__: v for v in (failing, fixed, cloned, shortcut_first, behind_a_layer)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    x = layer(accelerator)(torch.tensor([[-1.0], [2.0]], device=accelerator))  # of a layer before: -1 and 2
    output = VARIANTS[variant](x)
    output.sum().backward()
    got = output.flatten().tolist()
    assert got == [-1.0, 4.0], f"expected the outputs [-1.0, 4.0], got {got}"  # x + relu(x)


if __name__ == "__main__":
    main(*sys.argv[1:])
