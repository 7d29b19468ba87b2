# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0090"
# title = "DDP does not reduce gradients that torch.autograd.grad returns"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = ["https://github.com/pytorch/pytorch/issues/63929"]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/issues/47562",
#     "https://github.com/NVIDIA/apex/issues/457",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "assign what torch.autograd.grad returns to the parameters"
# raises = "AssertionError"
# match = [
#     "expected 2.0 on both ranks, got 1.0",
#     "expected 2.0 on both ranks, got 3.0",
# ]
#
# [tool.repro.variants.fixed]
# about = "loss.backward()"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
#
# [tool.repro.variants.reduced_by_hand]
# outcome = "passes"
# about = "all-reduce the returned gradients"
# ///
"""A loop that takes its gradients from torch.autograd.grad trains each rank on its own.

Symptom: gradients and weights differ between the ranks, as with meta-learning or an optimizer's step by hand. Silent. A
gradient penalty is not affected: its loss ends in a `backward()`, which reduces.

Cause: DDP's reduction hangs on the parameters' `AccumulateGrad` nodes. `torch.autograd.grad` returns gradients without
running these. DDP's documentation says so.

Fix: `loss.backward()`, or reduce what was returned.

Watch: `gradients_differ` finds it, whatever the cause is, and so cannot name it.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(loss, weight):
    (weight.grad,) = torch.autograd.grad(loss, [weight])


def fixed(loss, weight):
    loss.backward()


def reduced_by_hand(loss, weight):
    failing(loss, weight)
    distributed.all_reduce(weight.grad.div_(distributed.get_world_size()))


VARIANTS = {v.__name__: v for v in (failing, fixed, reduced_by_hand)}


def train(variant):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    ddp = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.0)
    x = torch.full((1, 1), 1.0 + 2.0 * rank)  # the gradient of w is x: 1 on rank 0, 3 on rank 1
    for _ in range(2):
        optimizer.zero_grad()
        VARIANTS[variant](ddp(x).sum(), ddp.module.weight)
        optimizer.step()
    got = ddp.module.weight.grad.item()
    assert got == 2.0, f"expected 2.0 on both ranks, got {got} on rank {rank}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
