# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0199"
# title = "A distributed evaluation reports the score of one rank's share of the data"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/pytorch/examples/issues/905",
#     "https://github.com/tczhangzhi/pytorch-distributed/issues/1",
#     "https://github.com/Lyken17/Efficient-PyTorch/issues/24",
#     "https://github.com/ORNL/HydraGNN/pull/116",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/681",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/4702",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "the correct samples of this rank, divided by the number of all samples"
# raises = "AssertionError"
# match = "expected 4 of 6 samples, 0.667, got 0.5"
#
# [tool.repro.variants.fixed]
# about = "all_reduce of the correct samples and of the samples, then the division"
# source = "https://github.com/pytorch/examples/issues/905"
#
# [tool.repro.variants.own_mean]
# outcome = "fails"
# claim = "divided by the samples of this rank, the accuracy is that of the evaluation"
# about = "the correct samples of this rank, divided by its own number of samples: another score on each rank"
# raises = "AssertionError"
# match = "expected 4 of 6 samples, 0.667, got 1.0"
# source = "https://github.com/ORNL/HydraGNN/pull/116"
#
# [tool.repro.variants.all_samples]
# outcome = "passes"
# about = "each rank evaluates all samples, without a DistributedSampler"
# ///
"""A distributed evaluation whose score is that of one rank's share.

Symptom: the accuracy or the loss falls to a half with two GPUs and to a quarter with four, or the same weights score
otherwise on one GPU. Each rank has another score; rank 0 prints its own. Silent. The best checkpoint and early stopping
follow the wrong score.

Cause: DistributedSampler gives each rank a share of the samples, and DDP reduces gradients and no scores. A rank counts
the correct samples of its share. Divided by the number of all samples the score is too small by the number of ranks;
divided by the number of its own it is the score of one share.

Fix: sum the correct samples and the samples over all ranks, and divide the sums. torchmetrics does so by itself. The
mean of the ranks' scores, as `self.log` of Lightning takes it with `sync_dist=True`, is right if all shares have the
same size (RPR-0071).

Apart: RPR-0058 is about the samples that DistributedSampler repeats.

Watch: no check sees it, since a score that a program prints is a number like any other.
"""

import os
import sys

import torch
from torch import distributed
from torch.distributed import run
from torch.utils.data import DataLoader, DistributedSampler

CORRECT = [1, 1, 1, 0, 1, 0]  # rank 0 gets samples 0, 2 and 4, all correct, and rank 1 gets 1, 3 and 5, one correct


def count(sampler):
    correct = seen = 0
    for batch in DataLoader(CORRECT, sampler=sampler):
        correct += batch.sum().item()
        seen += len(batch)
    return correct, seen


def share():
    return count(DistributedSampler(CORRECT, shuffle=False))


def failing():
    correct, _ = share()
    return correct / len(CORRECT)


def fixed():
    sums = torch.tensor(share())
    distributed.all_reduce(sums)
    correct, seen = sums.tolist()
    return correct / seen


def own_mean():
    correct, seen = share()
    return correct / seen


def all_samples():
    correct, seen = count(None)
    return correct / seen


VARIANTS = {v.__name__: v for v in (failing, fixed, own_mean, all_samples)}


def evaluate(score):
    distributed.init_process_group("gloo")
    got = round(score(), 3)
    distributed.barrier()
    if distributed.get_rank() == 0:  # the rank that logs
        assert got == 0.667, f"expected 4 of 6 samples, 0.667, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        evaluate(VARIANTS[variant])
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
