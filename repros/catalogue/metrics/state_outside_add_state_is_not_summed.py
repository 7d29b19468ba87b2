# /// script
# dependencies = ["torch>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0126"
# title = "A metric's attribute without add_state is neither summed nor reset"
# kind = "misuse"
# documented = "https://lightning.ai/docs/torchmetrics/stable/pages/implement.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/2707",
#     "https://github.com/Deci-AI/super-gradients/pull/446",
# ]
# packages = ["torchmetrics"]
# home = "2024-03"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "a mean whose number of samples is a plain attribute"
# raises = "AssertionError"
# match = "expected the mean 0.1 over ten samples, got 0.1111"
#
# [tool.repro.variants.fixed]
# about = "add_state for the sum and for the number, each with dist_reduce_fx='sum'"
# source = "https://lightning.ai/docs/torchmetrics/stable/pages/implement.html"
#
# [tool.repro.variants.after_reset]
# outcome = "fails"
# about = "the same after reset(), which sets back what add_state knows"
# raises = "AssertionError"
# match = "expected the mean 0.1 over ten samples, got 0.0526"
#
# [tool.repro.variants.mean_of_means]
# outcome = "fails"
# about = "the mean itself as a state, with dist_reduce_fx='mean'"
# raises = "AssertionError"
# match = "expected the mean 0.1 over ten samples, got 0.5"
# claim = "dist_reduce_fx='mean' gives the mean over all ranks' samples"
# source = "https://lightning.ai/docs/torchmetrics/stable/references/metric.html"
#
# [tool.repro.variants.one_rank]
# outcome = "passes"
# contrast = true
# about = "all samples on one rank, the plain attribute, and no reset"
# ///
"""A metric of one's own is right on one device in the first epoch, and wrong on two or in the next.

Symptom: values depend on the number of ranks, or fall from epoch to epoch. Silent.

Cause: `compute` reduces over the ranks what `add_state` has registered, and `reset` sets back the same. Another
attribute keeps the value of its rank, and what it had in the epochs before. `dist_reduce_fx="mean"` takes the mean of
the ranks' values, whatever numbers of samples they stand for.

Fix: register sums and numbers with `add_state`, reduce both with "sum", and divide in `compute`.

Watch: no check sees it, since which attributes of a metric are its state is known to the metric alone.
"""

import os
import sys

import torch
from torch import distributed
from torch.distributed import run
from torchmetrics import Metric


class PlainNumber(Metric):
    full_state_update = False

    def __init__(self):
        super().__init__()
        self.add_state("total", torch.tensor(0.0), dist_reduce_fx="sum")
        self.number = 0

    def update(self, values):
        self.total += values.sum()
        self.number += len(values)

    def compute(self):
        return self.total / self.number


class Mean(PlainNumber):
    def __init__(self):
        super().__init__()
        del self.number
        self.add_state("number", torch.tensor(0), dist_reduce_fx="sum")


class MeanOfMeans(Metric):
    full_state_update = False

    def __init__(self):
        super().__init__()
        self.add_state("mean", torch.tensor(0.0), dist_reduce_fx="mean")

    def update(self, values):
        self.mean = values.mean()

    def compute(self):
        return self.mean


# Nine zeros on rank 0 and a one on rank 1, so that the mean is 1 / 10. The plain attribute divides by 9 on rank 0.
def failing(samples):
    metric = PlainNumber()
    metric.update(samples)
    return metric


def fixed(samples):
    metric = Mean()
    metric.update(samples)
    return metric


def after_reset(samples):
    metric = PlainNumber()
    metric.update(torch.zeros(10))
    metric.reset()
    metric.update(samples)
    return metric  # on rank 0: 1 / (10 + 9)


def mean_of_means(samples):
    metric = MeanOfMeans()
    metric.update(samples)
    return metric


def one_rank(samples):
    metric = PlainNumber()
    if distributed.get_rank() == 0:
        metric.update(torch.tensor([0.0] * 9 + [1.0]))
    return metric


VARIANTS = {v.__name__: v for v in (failing, fixed, after_reset, mean_of_means, one_rank)}


def evaluate(variant):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    metric = VARIANTS[variant](torch.zeros(9) if rank == 0 else torch.ones(1))
    got = round(metric.compute().item(), 4)
    if rank == 0:
        assert got == 0.1, f"expected the mean 0.1 over ten samples, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        evaluate(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
