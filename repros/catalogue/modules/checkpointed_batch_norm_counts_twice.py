# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0056"
# title = "A checkpointed BatchNorm updates its running statistics twice a batch"
# kind = "limitation"
# documented = "https://github.com/pytorch/pytorch/issues/96136"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/96136",
#     "https://github.com/pytorch/pytorch/issues/62471",
#     "https://github.com/deepinsight/insightface/issues/2053",
#     "https://github.com/facebookresearch/fairscale/issues/1035",
#     "https://github.com/gpleiss/efficient_densenet_pytorch/issues/73",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "checkpoint a BatchNorm with the default momentum, 0.1"
# raises = "AssertionError"
# match = "expected a running mean of 0.2, got 0.38"
#
# [tool.repro.variants.fixed]
# about = "the momentum of which two updates make one: 1 - sqrt(1 - 0.1)"
# source = "https://github.com/gpleiss/efficient_densenet_pytorch/issues/73"
#
# [tool.repro.variants.reentrant]
# outcome = "fails"
# about = "the reentrant implementation runs the forward twice as well"
#
# [tool.repro.variants.not_checkpointed]
# outcome = "passes"
# contrast = true
# about = "without a checkpoint there is one update"
# ///
"""Activation checkpointing makes BatchNorm's statistics follow the latest batches more than they should.

Symptom: with checkpointing an evaluation gives other results than without, while the training losses agree. Silent.

Cause: `torch.utils.checkpoint` runs a block's forward again in the backward. `BatchNorm` updates `running_mean`,
`running_var` and `num_batches_tracked` in each forward in train mode, so each batch counts twice: with momentum m the
weight of a batch is 1 - (1 - m)^2.

Fix: leave BatchNorm out of checkpointed blocks, or give it the momentum `1 - sqrt(1 - m)`, as two updates with the same
batch then weigh m. `num_batches_tracked` still counts twice, which matters for `momentum=None`.

Watch: there is no check for it yet: one would have to count the updates of running statistics for each batch.
"""

import math
import sys

import torch
from torch.utils.checkpoint import checkpoint


def failing(x):
    norm = torch.nn.BatchNorm1d(1, momentum=0.1).to(x.device)
    return norm, checkpoint(norm, x, use_reentrant=False)


def fixed(x):
    norm = torch.nn.BatchNorm1d(1, momentum=1 - math.sqrt(1 - 0.1)).to(x.device)
    return norm, checkpoint(norm, x, use_reentrant=False)


def reentrant(x):
    norm = torch.nn.BatchNorm1d(1, momentum=0.1).to(x.device)
    return norm, checkpoint(norm, x, use_reentrant=True)


def not_checkpointed(x):
    norm = torch.nn.BatchNorm1d(1, momentum=0.1).to(x.device)
    return norm, norm(x)


VARIANTS = {v.__name__: v for v in (failing, fixed, reentrant, not_checkpointed)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    x = torch.tensor([[1.0], [3.0]], device=accelerator, requires_grad=True)  # a mean of 2, of which a tenth counts
    norm, output = VARIANTS[variant](x)
    output.sum().backward()
    got = round(norm.running_mean.item(), 4)
    assert got == 0.2, f"expected a running mean of 0.2, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
