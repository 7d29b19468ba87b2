# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0166"
# title = "A loader with a DistributedSampler is sharded again by prepare: half is never seen"
# kind = "misuse"
# documented = "https://github.com/huggingface/accelerate/issues/3829"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/3520",
#     "https://github.com/huggingface/accelerate/issues/4062",
#     "https://github.com/huggingface/accelerate/issues/4075",
#     "https://github.com/huggingface/accelerate/issues/4199",
#     "https://github.com/huggingface/accelerate/issues/3092",
#     "https://github.com/huggingface/accelerate/issues/3547",
#     "https://github.com/huggingface/transformers/issues/34365",
# ]
# upstream.related = [
#     "https://github.com/huggingface/accelerate/pull/4087",
#     "https://github.com/huggingface/accelerate/pull/4201",
#     "https://github.com/huggingface/accelerate/pull/4276",
# ]
# packages = ["accelerate"]
# home = "current"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["share_of_share"]
#
# [tool.repro.variants.failing]
# about = "a DistributedSampler in a loader that goes through prepare"
# raises = "AssertionError"
# match = "expected [0, 1, 2, 3, 4, 5, 6, 7], got [0, 3, 4, 7]"
#
# [tool.repro.variants.fixed]
# about = "leave the sampler out: prepare shards"
# source = "https://github.com/huggingface/transformers/issues/34365"
#
# [tool.repro.variants.sampler_alone]
# outcome = "passes"
# about = "keep the sampler, and do not prepare the loader"
#
# [tool.repro.variants.own_share]
# outcome = "fails"
# about = "a data set that holds the rank's share only"
# finds = ["share_of_other_data"]
#
# [tool.repro.variants.own_stream]
# outcome = "fails"
# about = "an iterable that yields the rank's share: rank 0 reads for all, and yields its own"
# raises = "AssertionError"
# match = "expected [0, 1, 2, 3, 4, 5, 6, 7], got [0, 2, 4, 6]"
# finds = []
# ///
"""Two parts of a program split the data among the ranks, and each rank sees a part of its part.

Symptom: `len(loader)` after `prepare` is half of what it should be on two ranks, an epoch ends early, and the same half
of the data is left out in each epoch unless a shuffle happens to mix it. Silent.

Cause: `prepare` takes every loader for one over the whole data set, and gives each rank every n-th batch. With a
`DistributedSampler`, or a data set that holds the rank's share, these are batches of that share. An iterable data set
is read on rank 0 alone, whose batches go to all ranks.

Fix: give `prepare` a plain loader, or leave the loader out of `prepare`.

Watch: no check sees `own_stream`, since none compares what the ranks' streams yield.
"""

import os
import sys

import torch
from accelerate import Accelerator
from torch import distributed
from torch.distributed import run
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, Subset

SAMPLES = torch.arange(8)


def failing(accelerator):
    # Rank 0 has the batches 0, 2, 4, 6, and gets the first and third of them. Rank 1, with 1, 3, 5, 7, gets the others.
    return accelerator.prepare(DataLoader(SAMPLES, sampler=DistributedSampler(SAMPLES, shuffle=False)))


def fixed(accelerator):
    return accelerator.prepare(DataLoader(SAMPLES))


def sampler_alone(accelerator):
    return DataLoader(SAMPLES, sampler=DistributedSampler(SAMPLES, shuffle=False))


def own_share(accelerator):
    return accelerator.prepare(DataLoader(Subset(SAMPLES, range(accelerator.process_index, 8, 2))))


class Share(IterableDataset):
    def __iter__(self):
        return iter(SAMPLES[distributed.get_rank() :: 2])


def own_stream(accelerator):
    return accelerator.prepare(DataLoader(Share(), batch_size=2))


VARIANTS = {v.__name__: v for v in (failing, fixed, sampler_alone, own_share, own_stream)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu")
    seen = torch.cat([batch.flatten() for batch in VARIANTS[variant](accelerator)])
    got = sorted(set(accelerator.gather(seen).tolist()))
    assert got == list(range(8)), f"the samples that an epoch has: expected {list(range(8))}, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
