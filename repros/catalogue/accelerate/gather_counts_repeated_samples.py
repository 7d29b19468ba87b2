# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0153"
# title = "gather counts the samples that prepare has repeated to fill the last batch"
# kind = "by design"
# documented = "https://huggingface.co/docs/accelerate/quicktour"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/350",
#     "https://github.com/huggingface/accelerate/issues/125",
#     "https://github.com/huggingface/accelerate/issues/226",
#     "https://github.com/huggingface/accelerate/issues/287",
#     "https://github.com/huggingface/accelerate/issues/3013",
# ]
# upstream.related = ["https://github.com/huggingface/accelerate/pull/540"]
# packages = ["accelerate"]
# home = "current"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "gather each batch"
# raises = "AssertionError"
# match = "expected [0, 1, 2, 3, 4], got [0, 1, 2, 3, 4, 0, 1, 2]"
#
# [tool.repro.variants.fixed]
# about = "gather_for_metrics each batch"
# source = "https://github.com/huggingface/accelerate/pull/540"
#
# [tool.repro.variants.cut]
# outcome = "passes"
# about = "gather each batch, and cut to the length of the data set"
# source = "https://github.com/huggingface/accelerate/issues/350"
#
# [tool.repro.variants.drop_last]
# outcome = "fails"
# about = "drop_last=True, which loses a sample instead"
# raises = "AssertionError"
# match = "expected [0, 1, 2, 3, 4], got [0, 1, 2, 3]"
# claim = "without drop_last=True the loader goes back to the beginning to fill the last batch"
# source = "https://github.com/huggingface/accelerate/issues/125"
#
# [tool.repro.variants.no_length]
# outcome = "fails"
# about = "gather_for_metrics with an iterable data set that is not dispatched: its length is not known"
# ///
"""Results are gathered from all ranks for a metric.

Symptom: a few samples more than the data set has, those at its beginning twice; the metric is slightly wrong, and
differs with the number of ranks and the batch size. Silent.

Cause: with `even_batches`, the default, all ranks have as many batches of one size: `prepare` fills the last ones with
samples from the beginning.
`gather` returns what the ranks have. `gather_for_metrics` cuts it, if the loader knows how long the data set is.

Fix: `gather_for_metrics`; for an iterable data set that is not dispatched, cut by hand.

Watch: no check sees it, since what gathered values are used for is known to the program alone.
"""

import os
import sys

import torch
from accelerate import Accelerator
from accelerate.data_loader import prepare_data_loader
from torch.distributed import run
from torch.utils.data import DataLoader, IterableDataset

SAMPLES = torch.arange(5)  # batches of two on two ranks: 0, 1 and 2, 3; then 4 with the first samples once more


class Stream(IterableDataset):
    def __iter__(self):
        return iter(SAMPLES)


def failing(accelerator):
    loader = accelerator.prepare(DataLoader(SAMPLES, batch_size=2))
    return torch.cat([accelerator.gather(batch) for batch in loader])


def fixed(accelerator):
    loader = accelerator.prepare(DataLoader(SAMPLES, batch_size=2))
    return torch.cat([accelerator.gather_for_metrics(batch) for batch in loader])


def cut(accelerator):
    loader = accelerator.prepare(DataLoader(SAMPLES, batch_size=2))
    return torch.cat([accelerator.gather(batch) for batch in loader])[: len(SAMPLES)]


def drop_last(accelerator):
    loader = accelerator.prepare(DataLoader(SAMPLES, batch_size=2, drop_last=True))
    return torch.cat([accelerator.gather(batch) for batch in loader])


def no_length(accelerator):
    loader = prepare_data_loader(DataLoader(Stream(), batch_size=2), put_on_device=True, dispatch_batches=False)
    return torch.cat([accelerator.gather_for_metrics(batch) for batch in loader])


VARIANTS = {v.__name__: v for v in (failing, fixed, cut, drop_last, no_length)}


def train(variant, accelerator):
    got = VARIANTS[variant](Accelerator(cpu=accelerator == "cpu")).tolist()
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
