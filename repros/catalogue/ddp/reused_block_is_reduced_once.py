# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0034"
# title = "DDP reduces a checkpointed block only once, however often a step uses it"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = ["https://github.com/pytorch/pytorch/issues/121594"]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/issues/109191",
#     "https://github.com/huggingface/transformers/issues/23018",
#     "https://github.com/huggingface/peft/issues/313",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["gradients_differ_checkpointed"]
#
# [tool.repro.variants.failing]
# about = "two forwards of the DDP model before one backward, with nothing to train outside its reentrant checkpoint"
# raises = "AssertionError"
# match = [
#     "step 0: expected gradient 4.0, the mean of 2 and 6, got 3.0",
#     "step 0: expected gradient 4.0, the mean of 2 and 6, got 5.0",
# ]
# source = "https://github.com/pytorch/pytorch/issues/121594"
#
# [tool.repro.variants.fixed]
# about = "checkpoint(..., use_reentrant=False)"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
#
# [tool.repro.variants.block_called_twice]
# outcome = "fails"
# about = "one forward that calls the block in two reentrant checkpoints"
#
# [tool.repro.variants.one_forward]
# outcome = "passes"
# about = "one forward over both batches"
#
# [tool.repro.variants.static_graph]
# outcome = "passes"
# about = "the block called twice under DistributedDataParallel(static_graph=True)"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# ///
"""The ranks' weights drift apart where all that learns is in checkpoints, and a step runs them more than once.

Symptom: gradients that differ between ranks; the loss of a worse model. Silent. The usual case is LoRA with gradient
checkpointing and several forwards to one backward, as for a contrastive or a preference loss. With one more trained
layer outside the checkpoints, a block that is called twice raises (RPR-0032).

Cause: each reentrant checkpoint (`torch.utils.checkpoint.CheckpointFunction`) runs a backward of its own. In the first,
every parameter of the block fires its hook; if those are all that DDP has, its buckets are full and
`Reducer::finalize_backward` is queued for the end of *that* backward. After it the reducer ignores the hooks: what the
block's other calls add to the gradients stays on its rank. DDP's documentation allows reentrant checkpoints only where
"each layer is checkpointed at most once".

Fix: `use_reentrant=False`, which the documentation recommends, or a static graph, with which the reducer waits for the
last of a parameter's hooks, or one forward. From transformers 5.0 on its checkpoints are not reentrant by default.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    def __init__(self, use_reentrant=True, calls=1):
        super().__init__()
        self.block = nn.Linear(1, 1, bias=False)
        nn.init.ones_(self.block.weight)
        self.use_reentrant, self.calls = use_reentrant, calls

    def forward(self, x):
        for _ in range(self.calls):
            x = checkpoint(self.block, x, use_reentrant=self.use_reentrant)
        return x


def failing(x):
    ddp = DistributedDataParallel(Model())
    return ddp, lambda: ddp(x) + ddp(x)


def fixed(x):
    ddp = DistributedDataParallel(Model(use_reentrant=False))
    return ddp, lambda: ddp(x) + ddp(x)


def static_graph(x):
    ddp = DistributedDataParallel(Model(calls=2), static_graph=True)
    return ddp, lambda: ddp(x)


def block_called_twice(x):
    ddp = DistributedDataParallel(Model(calls=2))
    return ddp, lambda: ddp(x)


def one_forward(x):
    ddp = DistributedDataParallel(Model())
    return ddp, lambda: ddp(torch.cat((x, x)))


VARIANTS = {v.__name__: v for v in (failing, fixed, static_graph, block_called_twice, one_forward)}


def train(variant):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    # The output is w * x, twice, or w * (w * x), with w = 1: each call of the block adds x to the gradient, 1 on rank 0 and
    # 3 on rank 1. If one call's x is reduced, the gradient is 2 + x: the mean of 1 and 3, plus the rank's own x.
    x = torch.full((1, 1), 1.0 + 2.0 * rank, requires_grad=True)
    ddp, forward = VARIANTS[variant](x)
    for step in range(2):
        ddp.zero_grad()
        forward().sum().backward()
        got = ddp.module.block.weight.grad.item()
        assert got == 4.0, f"step {step}: expected gradient 4.0, the mean of 2 and 6, got {got} on rank {rank}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
