# /// script
# dependencies = ["datasets>=2.18", "torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0149"
# title = "train_test_split without a seed gives each rank a test set of its own"
# kind = "misuse"
# documented = "https://huggingface.co/docs/datasets/package_reference/main_classes"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/2393",
#     "https://github.com/TensorAuto/OpenTau/pull/498",
#     "https://github.com/huggingface/datasets/issues/5696",
# ]
# packages = ["datasets"]
# home = "current"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["split_differs"]
#
# [tool.repro.variants.failing]
# about = "train_test_split(test_size=0.2) on every rank"
# raises = "AssertionError"
# match = "expected 1, got 2"
#
# [tool.repro.variants.fixed]
# about = "train_test_split(test_size=0.2, seed=0)"
# source = "https://github.com/huggingface/datasets/issues/5696"
#
# [tool.repro.variants.numpy_seeded]
# outcome = "passes"
# about = "numpy.random.seed(0) before the split"
#
# [tool.repro.variants.others_seeded]
# outcome = "fails"
# about = "random.seed(0) and torch.manual_seed(0) before the split"
#
# [tool.repro.variants.shuffled]
# outcome = "fails"
# about = "shuffle() without a seed, and the last part of the samples"
# ///
"""A script that runs on several ranks splits its data set by chance.

Symptom: each rank tests on samples that another rank trains on, so that the test loss is too good; shards of a shuffled
data set overlap. Silent.

Cause: every process calls `train_test_split` or `shuffle`, and without `seed` they draw from NumPy's generator, which
each process seeds for itself. Seeding Python's or torch's generator has no effect on it. accelerate's
`set_seed(seed, device_specific=True)` brings the same about with seeds.

Fix: `seed=...` in each call that draws.
"""

import os
import random
import sys

import numpy as np
import torch
from datasets import Dataset
from torch import distributed
from torch.distributed import run


def failing(data):
    return data.train_test_split(test_size=0.2)["test"]


def fixed(data):
    return data.train_test_split(test_size=0.2, seed=0)["test"]


def numpy_seeded(data):
    np.random.seed(0)  # noqa: NPY002 - the generator that datasets draws from
    return data.train_test_split(test_size=0.2)["test"]


def others_seeded(data):
    random.seed(0)
    torch.manual_seed(0)
    return data.train_test_split(test_size=0.2)["test"]


def shuffled(data):
    return data.shuffle().select(range(80, 100))


VARIANTS = {v.__name__: v for v in (failing, fixed, numpy_seeded, others_seeded, shuffled)}


def train(variant, accelerator):
    distributed.init_process_group("gloo")
    # As set_seed(..., device_specific=True) does. Without it, NumPy takes a random seed in each process.
    np.random.seed(distributed.get_rank())  # noqa: NPY002
    test = list(VARIANTS[variant](Dataset.from_dict({"x": range(100)}))["x"])
    tests = [None, None]
    distributed.all_gather_object(tests, sorted(test))
    got = len(set(map(tuple, tests)))
    assert got == 1, f"different test sets on two ranks: expected 1, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
