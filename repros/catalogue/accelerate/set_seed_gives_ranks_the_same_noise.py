# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0159"
# title = "set_seed gives every rank the same noise, dropout masks and augmentations"
# kind = "by design"
# documented = "https://huggingface.co/docs/accelerate/package_reference/utilities"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/236",
#     "https://github.com/Robbyant/lingbot-vla-v2/issues/41",
#     "https://github.com/threestudio-project/threestudio/issues/195",
# ]
# upstream.related = ["https://github.com/huggingface/accelerate/pull/266"]
# packages = ["accelerate"]
# home = "current"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "set_seed(0) on every rank"
# raises = "AssertionError"
# match = "expected 2, got 1"
#
# [tool.repro.variants.fixed]
# about = "set_seed(0, device_specific=True)"
# source = "https://github.com/huggingface/accelerate/pull/266"
#
# [tool.repro.variants.by_hand]
# outcome = "passes"
# about = "set_seed(process_index)"
# source = "https://github.com/huggingface/accelerate/issues/236"
#
# [tool.repro.variants.own_generator]
# outcome = "passes"
# about = "draw the noise with a generator of the rank's own"
#
# [tool.repro.variants.shuffled_loader]
# outcome = "fails"
# about = "draw after a prepared loader has begun to shuffle, which has a generator of its own"
# ///
"""A training that draws noise, timesteps or augmentations is started on several ranks with one seed.

Symptom: two ranks draw the same noise in each step for their different samples, so that a batch has less variety than
its size promises; results get worse with the number of ranks. Silent.

Cause: `set_seed` seeds `random`, NumPy and torch alike on all ranks. Nothing that `prepare` does changes that: only the
order of a loader's samples is drawn apart from these generators.

Fix: `set_seed(seed, device_specific=True)`, which adds the rank. Whatever must be alike on all ranks, such as a random
split of the data, then needs a generator of its own.

Watch: no check sees it, since none compares what the ranks draw.
"""

import os
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.distributed import run
from torch.utils.data import DataLoader


def failing(accelerator):
    set_seed(0)
    return torch.randn(1)


def fixed(accelerator):
    set_seed(0, device_specific=True)
    return torch.randn(1)


def by_hand(accelerator):
    set_seed(accelerator.process_index)
    return torch.randn(1)


def own_generator(accelerator):
    set_seed(0)
    return torch.randn(1, generator=torch.Generator().manual_seed(accelerator.process_index))


def shuffled_loader(accelerator):
    set_seed(0)
    next(iter(accelerator.prepare(DataLoader(torch.arange(4), shuffle=True))))
    return torch.randn(1)


VARIANTS = {v.__name__: v for v in (failing, fixed, by_hand, own_generator, shuffled_loader)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu")
    got = len(set(accelerator.gather(VARIANTS[variant](accelerator)).tolist()))
    assert got == 2, f"different draws on two ranks: expected 2, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
