# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0081"
# title = "scaled_dot_product_attention applies dropout in eval mode too"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/99293",
#     "https://github.com/pytorch/pytorch/issues/124464",
#     "https://github.com/huggingface/pytorch-image-models/pull/1978",
#     "https://github.com/karpathy/nanoGPT/pull/240",
#     "https://github.com/NVIDIA/torch-harmonics/pull/221",
#     "https://github.com/wenet-e2e/wenet/issues/2699",
#     "https://github.com/pytorch/torchtune/issues/1791",
# ]
# upstream.related = ["https://github.com/pytorch/pytorch/pull/126294"]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "pass the layer's dropout rate, and evaluate the layer in eval mode"
# raises = "AssertionError"
# match = "expected 0 of 64 outputs of an evaluation to differ from 1.0, got 64"
#
# [tool.repro.variants.fixed]
# about = "pass the rate in train mode alone"
# source = "https://github.com/pytorch/pytorch/issues/124464"
#
# [tool.repro.variants.no_grad]
# outcome = "fails"
# about = "no_grad does not switch dropout off either"
# ///
"""A model evaluates differently each time, though it is in eval mode.

Symptom: two evaluations of one input differ, and metrics are a little worse than they should be. Silent.

Cause: `torch.nn.functional.scaled_dot_product_attention` has no module, hence no mode: its `dropout_p` is applied
whenever it is above zero. `nn.Dropout` and `nn.MultiheadAttention` look at `self.training`.

Fix: `dropout_p=self.dropout if self.training else 0.0`.

Watch: no check tells it from a healthy evaluation, since dropout in eval mode is done on purpose, too, to estimate
uncertainty.
"""

import contextlib
import sys

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Attention(nn.Module):
    dropout = 0.5

    def rate(self):
        return self.dropout

    def forward(self, x):
        return scaled_dot_product_attention(x, x, x, dropout_p=self.rate())


def failing():
    return Attention(), contextlib.nullcontext()


class ByMode(Attention):
    def rate(self):
        return self.dropout if self.training else 0.0


def fixed():
    return ByMode(), contextlib.nullcontext()


def no_grad():
    return Attention(), torch.no_grad()


VARIANTS = {v.__name__: v for v in (failing, fixed, no_grad)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    torch.manual_seed(0)
    attention, context = VARIANTS[variant]()
    # Seven equal keys have a weight of 1/7 each. What dropout keeps of them counts twice, and seven has no half.
    with context:
        output = attention.eval()(torch.ones(1, 1, 7, 64, device=accelerator))[0, 0, 0]
    got = int((output - 1.0).abs().gt(1e-3).sum())
    assert got == 0, f"expected 0 of 64 outputs of an evaluation to differ from 1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
