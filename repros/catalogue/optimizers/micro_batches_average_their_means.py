# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0194"
# title = "Accumulated micro-batches average their means, whatever number of tokens they have"
# kind = "misuse"
# documented = "https://huggingface.co/blog/gradient_accumulation"
# upstream.reports = [
#     "https://github.com/huggingface/trl/issues/2175",
#     "https://github.com/huggingface/transformers/issues/35203",
#     "https://github.com/karpathy/nanochat/pull/59",
#     "https://github.com/MakazhanAlpamys/Soup/issues/932",
#     "https://github.com/ml-explore/mlx-lm/pull/1413",
#     "https://github.com/OpenNMT/OpenNMT-py/issues/2209",
# ]
# upstream.related = ["https://github.com/huggingface/transformers/pull/34191"]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "(loss / 2).backward() for micro-batches of 3 tokens and of 1"
# raises = "AssertionError"
# match = "expected a gradient of 2.0, got 3.0"
#
# [tool.repro.variants.fixed]
# about = "the sum of each micro-batch, divided by the tokens of all"
# source = "https://github.com/karpathy/nanochat/pull/59"
#
# [tool.repro.variants.weighted]
# outcome = "passes"
# about = "each mean times its share of the tokens"
# source = "https://github.com/ml-explore/mlx-lm/pull/1413"
#
# [tool.repro.variants.alike]
# outcome = "passes"
# contrast = true
# about = "micro-batches with equally many tokens"
#
# [tool.repro.variants.one_batch]
# outcome = "passes"
# contrast = true
# about = "all tokens in one batch"
# ///
"""A batch that is cut into micro-batches trains on another loss than the whole batch.

Symptom: with gradient accumulation the loss curve differs from that of the same batch without, and the result depends on
how samples fall into micro-batches. Short ones count most. Silent.

Cause: a loss with `reduction="mean"` divides by the micro-batch's own number of tokens (those that are not padding or
ignored), and `loss / steps` gives all micro-batches the same weight. The mean of means is the mean of all only where the
numbers are equal.

Fix: sum the losses, and divide by the number of counted tokens in the whole group of micro-batches, which has to be
known before the first backward, or divide the gradients before the step.

Apart: RPR-0155 and RPR-0137 are transformers' own ways to it, RPR-0071 the same between ranks, RPR-0170 a last group
with fewer micro-batches.

Watch: there is no check for it yet: the number of tokens that a loss has counted is not to be seen from outside.
"""

import sys

import torch

VALUES = [1.0, 1.0, 1.0, 5.0]  # the gradient of each token's loss: 2 in the mean


def failing(groups, weight):
    for group in groups([3, 1]):
        loss = (weight * group).mean()
        (loss / 2).backward()


def fixed(groups, weight):
    for group in groups([3, 1]):
        loss = (weight * group).sum()
        (loss / len(VALUES)).backward()


def weighted(groups, weight):
    for group in groups([3, 1]):
        loss = (weight * group).mean()
        (loss * len(group) / len(VALUES)).backward()


def alike(groups, weight):
    for group in groups([2, 2]):
        loss = (weight * group).mean()
        (loss / 2).backward()


def one_batch(groups, weight):
    for group in groups([4]):
        (weight * group).mean().backward()


VARIANTS = {v.__name__: v for v in (failing, fixed, weighted, alike, one_batch)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    tokens = torch.tensor(VALUES, device=accelerator)
    weight = torch.nn.Parameter(torch.ones(1, device=accelerator))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    VARIANTS[variant](tokens.split, weight)
    got = weight.grad.item()
    optimizer.step()
    assert got == 2.0, f"expected a gradient of 2.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
