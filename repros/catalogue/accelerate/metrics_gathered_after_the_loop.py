# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0140"
# title = "gather_for_metrics after the loop keeps the repeated samples, in another order"
# kind = "misuse"
# documented = "https://huggingface.co/docs/accelerate/quicktour"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/226",
#     "https://github.com/huggingface/accelerate/issues/1674",
#     "https://github.com/CarperAI/trlx/pull/315",
# ]
# upstream.related = [
#     "https://github.com/huggingface/accelerate/pull/540",
#     "https://github.com/huggingface/accelerate/issues/125",
# ]
# packages = ["accelerate"]
# home = "current"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["gathered_after_the_loop"]
#
# [tool.repro.variants.failing]
# about = "collect on each rank, and call gather_for_metrics once after the loop"
# raises = "AssertionError"
# match = "expected [0, 1, 2, 3, 4, 5, 6], got [0, 1, 4, 5, 2, 3, 6, 0]"
#
# [tool.repro.variants.fixed]
# about = "gather_for_metrics for each batch, within the loop"
# source = "https://huggingface.co/docs/accelerate/quicktour"
#
# [tool.repro.variants.at_the_last_batch]
# outcome = "fails"
# about = "once within the loop, at the last batch: cut as if it were that batch"
# raises = "AssertionError"
# match = "expected [0, 1, 2, 3, 4, 5, 6], got [0, 1, 4]"
# finds = ["gathered_as_one_batch"]
#
# [tool.repro.variants.cut_by_hand]
# outcome = "fails"
# about = "gather after the loop, and cut to the length of the data set"
# raises = "AssertionError"
# match = "expected [0, 1, 2, 3, 4, 5, 6], got [0, 1, 4, 5, 2, 3, 6]"
# claim = "truncate the arrays of predictions to the length of the validation dataset"
# source = "https://github.com/huggingface/accelerate/issues/125"
# finds = []
# ///
"""Predictions are collected in a list on each rank, and gathered when the evaluation is over.

Symptom: a metric over more predictions than there are samples, or over a few of them, and next to labels of other
samples if these come from the data set. One rank is right. Silent.

Cause: `gather_for_metrics` cuts what `prepare` has repeated to fill the last batch, but only while the loop is there.
After the loop it is a plain `gather`. At the last batch it takes what it is given for this batch, and keeps as much as
this batch has. And a gather puts ranks one after the other, so that samples are in the order of the data set only batch
by batch.

Fix: call `gather_for_metrics` for each batch, and collect what it returns.

Watch: no check sees `cut_by_hand`, since what is gathered by `gather` alone, and for what, is known to the program alone.
"""

import os
import sys

import torch
from accelerate import Accelerator
from torch.distributed import run
from torch.utils.data import DataLoader

# Seven samples in batches of two: rank 0 has 0, 1 and 4, 5; rank 1 has 2, 3 and 6 with a second 0.
SAMPLES = torch.arange(7)


def failing(accelerator, loader):
    seen = list(loader)
    return accelerator.gather_for_metrics(torch.cat(seen))


def fixed(accelerator, loader):
    return torch.cat([accelerator.gather_for_metrics(batch) for batch in loader])


def at_the_last_batch(accelerator, loader):
    seen = []
    for step, batch in enumerate(loader, 1):
        seen.append(batch)
        if step == len(loader):
            gathered = accelerator.gather_for_metrics(torch.cat(seen))
    return gathered


def cut_by_hand(accelerator, loader):
    return accelerator.gather(torch.cat(list(loader)))[: len(SAMPLES)]


VARIANTS = {v.__name__: v for v in (failing, fixed, at_the_last_batch, cut_by_hand)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu")
    got = VARIANTS[variant](accelerator, accelerator.prepare(DataLoader(SAMPLES, batch_size=2))).tolist()
    assert got == SAMPLES.tolist(), f"the gathered samples: expected {SAMPLES.tolist()}, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
