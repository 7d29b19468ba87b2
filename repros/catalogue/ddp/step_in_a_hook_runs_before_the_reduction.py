# /// script
# dependencies = ["torch>=2.1"]
#
# [tool.repro]
# id = "RPR-0062"
# title = "An optimizer step in a gradient hook runs before DDP has reduced"
# kind = "limitation"
# documented = "https://pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html"
# upstream.reports = [
#     "https://github.com/kohya-ss/musubi-tuner/issues/679",
#     "https://github.com/pytorch/torchrec/issues/4268",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "an optimizer for the parameter, which steps in register_post_accumulate_grad_hook"
# raises = "AssertionError"
# match = [
#     "expected the weight 0.6 after two steps, got 0.8",
#     "expected the weight 0.6 after two steps, got 0.4",
# ]
#
# [tool.repro.variants.fixed]
# about = "step after the backward"
# ///
"""To save the gradients' memory the optimizer steps inside the backward, and the ranks drift apart.

Symptom: under DDP the ranks' weights differ from the first step on; on one device the same code is right. Silent.

Cause: the hook of `register_post_accumulate_grad_hook` runs when this rank's gradient is accumulated. DDP reduces its
buckets afterwards, so the step takes the rank's own gradient, and the reduced one comes too late.

Fix: step after the backward under DDP; under FSDP the memory that the hook saves is sharded anyway.

Watch: `gradients_differ` finds it, whatever the cause is, and so cannot name it.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(weight, optimizer):
    weight.register_post_accumulate_grad_hook(lambda _: optimizer.step())
    return lambda: None


def fixed(weight, optimizer):
    return optimizer.step


VARIANTS = {v.__name__: v for v in (failing, fixed)}


def train(variant):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    layer = nn.Linear(1, 1, bias=False)
    nn.init.ones_(layer.weight)
    ddp = DistributedDataParallel(layer)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    step = VARIANTS[variant](layer.weight, optimizer)
    for _ in range(2):  # the gradient is 1 on rank 0 and 3 on rank 1: with their mean, 1 - 2 * 0.1 * 2
        optimizer.zero_grad()
        ddp(torch.full((1, 1), 1.0 + 2.0 * rank)).sum().backward()
        step()
    got = round(layer.weight.item(), 4)
    assert got == 0.6, f"expected the weight 0.6 after two steps, got {got} on rank {rank}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
