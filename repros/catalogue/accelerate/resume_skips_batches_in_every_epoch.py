# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0167"
# title = "A loader from skip_first_batches skips its batches in every later epoch"
# kind = "misuse"
# documented = "https://huggingface.co/docs/accelerate/usage_guides/checkpoint"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/1451",
#     "https://github.com/allenai/open-instruct/pull/681",
#     "https://github.com/huggingface/accelerate/issues/2016",
# ]
# packages = ["accelerate"]
# home = "current"
# silent = true
# finds = ["batches_skipped_again"]
#
# [tool.repro.variants.failing]
# about = "loader = accelerator.skip_first_batches(loader, 2) before the epochs"
# raises = "AssertionError"
# match = "expected [2, 3, 0, 1, 2, 3], got [2, 3, 2, 3]"
#
# [tool.repro.variants.fixed]
# about = "take the shortened loader for the first epoch only"
# source = "https://github.com/huggingface/accelerate/issues/1451"
#
# [tool.repro.variants.number_kept]
# outcome = "fails"
# about = "shorten the loader anew in each epoch, by a number that is never reset"
#
# [tool.repro.variants.number_reset]
# outcome = "passes"
# about = "set the number to zero after the first epoch"
# source = "https://github.com/allenai/open-instruct/pull/681"
# ///
"""A run that was interrupted within an epoch goes on, and leaves out the same part of all later epochs.

Symptom: epochs after a resume are as short as the rest of the interrupted one; what was seen before the interruption is
not seen again, unless a shuffle mixes it. Silent.

Cause: `skip_first_batches` returns a new loader, whose batch sampler skips whenever it is iterated. It is not used up
by one epoch.

Fix: iterate the shortened loader in the first epoch, and the original one in the others.
"""

import sys

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

DONE = 2  # batches of the first epoch, of four, that the interrupted run has trained on


def failing(accelerator, loader):
    loader = accelerator.skip_first_batches(loader, DONE)
    for _ in range(2):
        yield from loader


def fixed(accelerator, loader):
    rest = accelerator.skip_first_batches(loader, DONE)
    for epoch in range(2):
        yield from rest if epoch == 0 else loader


def number_kept(accelerator, loader):
    done = DONE
    for _ in range(2):
        yield from accelerator.skip_first_batches(loader, done)


def number_reset(accelerator, loader):
    done = DONE
    for _ in range(2):
        yield from accelerator.skip_first_batches(loader, done)
        done = 0


VARIANTS = {v.__name__: v for v in (failing, fixed, number_kept, number_reset)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu")
    loader = accelerator.prepare(DataLoader(torch.arange(4)))
    got = [int(batch) for batch in VARIANTS[variant](accelerator, loader)]
    assert got == [2, 3, 0, 1, 2, 3], f"the samples of two epochs: expected [2, 3, 0, 1, 2, 3], got {got}"


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    train(variant, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
