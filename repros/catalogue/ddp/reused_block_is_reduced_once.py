# /// script
# requires-python = ">=3.9"
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0034"
# title = "DDP reduces only one backward of a block that is checkpointed twice"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/121594",
#     "https://github.com/pytorch/pytorch/issues/109191",
# ]
# upstream.related = [
#     "https://github.com/huggingface/transformers/issues/23018",
#     "https://github.com/huggingface/peft/issues/313",
# ]
# packages = ["torch"]
# affected = []
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cpu"]
# processes = 2
# silent = true
# finds = ["gradients_differ"]
#
# [tool.repro.variants.failing]
# outcome = "fails"
# about = "one block, called twice in reentrant checkpoints, and nothing else to train"
# raises = "AssertionError"
# match = [
#     "step 0: expected gradient 4.0, the mean of 2 and 6, got 3.0",
#     "step 0: expected gradient 4.0, the mean of 2 and 6, got 5.0",
# ]
#
# [tool.repro.variants.fixed]
# outcome = "passes"
# about = "checkpoint(..., use_reentrant=False)"
# source = "https://github.com/huggingface/accelerate/issues/389"
#
# [tool.repro.variants.static_graph]
# outcome = "passes"
# about = "DistributedDataParallel(static_graph=True)"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# ///
"""The ranks' weights drift apart where one block does all the learning and is checkpointed more than once.

Symptom: gradients that differ between ranks; the loss of a worse model. Silent. With one more trained layer outside the
checkpoints, the same model raises (RPR-0032).

Cause: each reentrant checkpoint (`torch.utils.checkpoint.CheckpointFunction`) runs a backward of its own. In the first,
every parameter of the block fires its hook; if those are all that DDP has, its buckets are full and
`Reducer::finalize_backward` is queued for the end of *that* backward. After it the reducer ignores the hooks: what the
block's other calls add to the gradients stays on its rank.

Fix: `use_reentrant=False`, or a static graph, with which the reducer waits for the last of a parameter's hooks.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    def __init__(self, use_reentrant):
        super().__init__()
        self.block = nn.Linear(1, 1, bias=False)
        nn.init.ones_(self.block.weight)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        x = checkpoint(self.block, x, use_reentrant=self.use_reentrant)
        return checkpoint(self.block, x, use_reentrant=self.use_reentrant)


def failing():
    return DistributedDataParallel(Model(use_reentrant=True))


def fixed():
    return DistributedDataParallel(Model(use_reentrant=False))


def static_graph():
    return DistributedDataParallel(Model(use_reentrant=True), static_graph=True)


VARIANTS = (failing, fixed, static_graph)


def train(variant):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    ddp = {v.__name__: v for v in VARIANTS}[variant]()
    # The output is w * (w * x) with w = 1: each of the two calls adds x to the gradient. x is 1 on rank 0 and 3 on rank 1.
    # If only the first call's x is reduced, the gradient is 2 + x: the mean of 1 and 3, plus the rank's own x.
    x = torch.full((1, 1), 1.0 + 2.0 * rank, requires_grad=True)
    for step in range(2):
        ddp.zero_grad()
        ddp(x).sum().backward()
        got = ddp.module.block.weight.grad.item()
        assert got == 4.0, f"step {step}: expected gradient 4.0, the mean of 2 and 6, got {got} on rank {rank}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in (names := [v.__name__ for v in VARIANTS]):
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(names)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
