# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0099"
# title = "spectral_norm in eval mode divides by a random number until the first training"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/51800",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/9571",
# ]
# upstream.related = ["https://github.com/pytorch/pytorch/pull/59564"]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
# finds = ["spectral_norm_not_estimated"]
#
# [tool.repro.variants.failing]
# about = "evaluate a network of one layer with nn.utils.spectral_norm before it is trained"
# raises = "AssertionError"
# match = "expected outputs of 1.0, got 28.4"
#
# [tool.repro.variants.fixed]
# about = "call it once in train mode first"
# source = "https://github.com/pytorch/pytorch/issues/51800"
#
# [tool.repro.variants.parametrized]
# outcome = "passes"
# about = "torch.nn.utils.parametrizations.spectral_norm, which estimates the norm when it is applied"
# source = "https://github.com/pytorch/pytorch/pull/59564"
#
# [tool.repro.variants.more_iterations]
# outcome = "fails"
# about = "n_power_iterations=20, of which eval mode makes none"
# ///
"""A network with spectral normalisation is evaluated before its first training pass.

Symptom: outputs many times too large, or infinite in a deep network: from a generator's samples before the training, from
the validation before the first epoch, or in a comparison of initialisations. Silent.

Cause: `nn.utils.spectral_norm` begins with two random vectors, and a call in train mode moves them towards those whose
product with the weight is its largest singular value. A call in eval mode divides by the product as it is, which is near
zero for random vectors in many dimensions.

Fix: one call in train mode first, or `nn.utils.parametrizations.spectral_norm`, which torch recommends in its place.
"""

import sys

import torch
from torch import nn


def failing(layer, x):
    return nn.utils.spectral_norm(layer)


def fixed(layer, x):
    layer = nn.utils.spectral_norm(layer)
    layer(x)
    return layer


def parametrized(layer, x):
    return nn.utils.parametrizations.spectral_norm(layer)


def more_iterations(layer, x):
    return nn.utils.spectral_norm(layer, n_power_iterations=20)


VARIANTS = {v.__name__: v for v in (failing, fixed, parametrized, more_iterations)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    torch.manual_seed(7)  # the two random vectors
    layer, x = nn.Linear(64, 64, bias=False), torch.ones(1, 64)
    nn.init.constant_(layer.weight, 1 / 64)  # it maps ones to ones, and all that is orthogonal to them to zero: norm 1
    layer = VARIANTS[variant](layer, x).to(accelerator).eval()
    got = round(layer(x.to(accelerator)).abs().mean().item(), 1)
    assert got == 1.0, f"expected outputs of 1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
