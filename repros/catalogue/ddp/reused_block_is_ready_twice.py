# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0032"
# title = "Under DDP a block that is checkpointed twice marks its parameters ready twice"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/23018",
#     "https://github.com/huggingface/peft/issues/313",
#     "https://github.com/microsoft/FocalNet/issues/4",
#     "https://github.com/bytedance/ibot/issues/30",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "one block, called twice in reentrant checkpoints, behind a layer without one"
# raises = "RuntimeError"
# match = "Expected to mark a variable ready only once"
# frames = ["utils/checkpoint.py:backward"]
#
# [tool.repro.variants.fixed]
# about = "checkpoint(..., use_reentrant=False)"
# source = "https://github.com/huggingface/accelerate/issues/389"
#
# [tool.repro.variants.static_graph]
# outcome = "passes"
# about = "DistributedDataParallel(static_graph=True)"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
#
# [tool.repro.variants.unused_not_searched]
# outcome = "fails"
# about = "find_unused_parameters=False written out: it is the default, and so what fails already"
# claim = "activation checkpoints work as soon as find_unused_parameters is off"
# source = "https://github.com/huggingface/peft/issues/313"
# ///
"""A model that calls one block several times, with activation checkpoints, trains on one GPU and dies under DDP.

Symptom: `RuntimeError: Expected to mark a variable ready only once ... Parameter at index 1 with name block.weight
has been marked as ready twice`, in the first backward.

Cause: a reentrant checkpoint (`torch.utils.checkpoint.CheckpointFunction`) runs a backward of its own inside the
backward, one per call of the block. In each, the block's parameters get a gradient and fire the reducer's hook,
whereas in one graph both gradients are summed first and fire it once. `Reducer::mark_variable_ready` expects it to
fire once. This is documented: DDP works with reentrant checkpoints only where no parameter is unused and "each layer
is checkpointed at most once".

Fix: `use_reentrant=False`, where the recomputed block is part of the one graph; or a static graph, with which the
reducer learns in its first iteration how often each hook fires.

Apart: RPR-0033 raises the same message where every block is called once: there `find_unused_parameters=True` is the
cause. Where the reused block has all the parameters that are trained, nothing is raised: RPR-0034.
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
        self.first, self.block = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        x = self.first(x)
        x = checkpoint(self.block, x, use_reentrant=self.use_reentrant)
        return checkpoint(self.block, x, use_reentrant=self.use_reentrant)


def failing():
    return DistributedDataParallel(Model(use_reentrant=True))


def fixed():
    return DistributedDataParallel(Model(use_reentrant=False))


def static_graph():
    return DistributedDataParallel(Model(use_reentrant=True), static_graph=True)


def unused_not_searched():
    return DistributedDataParallel(Model(use_reentrant=True), find_unused_parameters=False)


VARIANTS = {v.__name__: v for v in (failing, fixed, static_graph, unused_not_searched)}


def train(variant):
    distributed.init_process_group("gloo")
    ddp = VARIANTS[variant]()
    for _ in range(2):
        ddp(torch.ones(1, 1)).sum().backward()


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
