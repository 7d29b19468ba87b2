# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0097"
# title = "Without zero_grad each step adds the gradients of all steps before"
# kind = "by design"
# documented = "https://pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/47175",
#     "https://github.com/IDEA-Research/DN-DETR/issues/19",
#     "https://github.com/yueliu1999/HSAN/issues/6",
#     "https://github.com/LoreGoetschalckx/GANalyze/issues/7",
#     "https://github.com/FreedomIntelligence/TextClassificationBenchmark/issues/20",
#     "https://github.com/salesforce/corr_based_prediction/issues/1",
#     "https://github.com/udacity/deep-learning-v2-pytorch/pull/160",
#     "https://github.com/meta-pytorch/torchforge/pull/71",
#     "https://github.com/tenstorrent/tt-blacksmith/pull/711",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
# finds = ["gradients_not_zeroed"]
#
# [tool.repro.variants.failing]
# about = "backward and step, eight times"
# raises = "AssertionError"
# match = "expected weight -8.0 after eight steps, got -36.0"
#
# [tool.repro.variants.fixed]
# about = "zero the optimizer's gradients before each backward"
# source = "https://pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html"
#
# [tool.repro.variants.by_the_model]
# outcome = "passes"
# about = "zero the model's gradients before each backward"
#
# [tool.repro.variants.once_per_epoch]
# outcome = "fails"
# about = "zero them at the beginning of each of two epochs"
# raises = "AssertionError"
# match = "expected weight -8.0 after eight steps, got -20.0"
# source = "https://github.com/pytorch/pytorch/issues/47175"
# ///
"""A training loop that calls backward and step, and nothing that clears gradients.

Symptom: the loss falls at first, then swings and grows; a smaller learning rate delays that. Silent.

Cause: `backward` adds to `.grad`, so that losses and batches can be accumulated; no optimizer clears what it has used.
Each step goes along the sum of all gradients so far, which works like a momentum without a decay.

Fix: `optimizer.zero_grad()` before each backward, or after each step.
"""

import sys

import torch


def failing(model, optimizer, batch):
    model(batch).sum().backward()
    optimizer.step()


def fixed(model, optimizer, batch):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()


def by_the_model(model, optimizer, batch):
    model.zero_grad()
    failing(model, optimizer, batch)


VARIANTS = {"failing": failing, "fixed": fixed, "by_the_model": by_the_model, "once_per_epoch": failing}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = torch.nn.Linear(1, 1, bias=False, device=accelerator)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(2):
        if variant == "once_per_epoch":
            optimizer.zero_grad()
        for _ in range(4):  # each adds a gradient of 1: the sums are 1 + 2 + ... + 8, or twice 1 + 2 + 3 + 4
            VARIANTS[variant](model, optimizer, torch.ones(1, 1, device=accelerator))
    got = model.weight.item()
    assert got == -8.0, f"expected weight -8.0 after eight steps, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
