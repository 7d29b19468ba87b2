# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0033"
# title = "DDP's search for unused parameters counts those of reentrant checkpoints as unused"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/313",
#     "https://github.com/huggingface/accelerate/issues/2017",
#     "https://github.com/huggingface/accelerate/issues/389",
#     "https://github.com/huggingface/trl/issues/4782",
# ]
# upstream.related = ["https://github.com/huggingface/transformers/pull/4659"]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "a reentrant checkpoint under find_unused_parameters=True"
# raises = "RuntimeError"
# match = "Expected to mark a variable ready only once"
# frames = ["utils/checkpoint.py:backward"]
#
# [tool.repro.variants.fixed]
# about = "find_unused_parameters left off"
# source = "https://github.com/huggingface/accelerate/issues/2017"
#
# [tool.repro.variants.not_reentrant]
# outcome = "passes"
# about = "checkpoint(..., use_reentrant=False)"
# source = "https://github.com/huggingface/accelerate/issues/389"
#
# [tool.repro.variants.static_graph]
# outcome = "passes"
# about = "static_graph=True, which overrules find_unused_parameters"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# ///
"""With activation checkpoints on, a training under `find_unused_parameters=True` dies in its first backward.

Symptom: `RuntimeError: Expected to mark a variable ready only once ... Parameter at index 1 with name
checkpointed.weight has been marked as ready twice`. Lightning's `ddp_find_unused_parameters_true` turns that flag on,
and so does transformers' Trainer for a model that is not a PreTrainedModel, such as one wrapped by peft.

Cause: `Reducer::prepare_for_backward` walks the graph from the outputs and at once marks as ready every parameter
that it misses. A reentrant checkpoint ran its block under `no_grad`: the block's parameters are not in any graph yet.
They get one in the backward that `CheckpointFunction` runs inside the backward, fire the reducer's hook, and are
ready twice. DDP's documentation says so in a note: "make sure you are not passing find_unused_parameters=True" beside
reentrant checkpoints, and `use_reentrant=False` works "without any limitations".

Fix: leave `find_unused_parameters` off, or use `use_reentrant=False`, whose block is in the graph. It is the default of
`gradient_checkpointing_enable` from transformers 5 on.

Apart: RPR-0032 raises the same message without that flag, for a block that is called twice.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    def __init__(self, use_reentrant=True):
        super().__init__()
        self.first, self.checkpointed = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        return checkpoint(self.checkpointed, self.first(x), use_reentrant=self.use_reentrant)


def failing():
    return DistributedDataParallel(Model(), find_unused_parameters=True)


def fixed():
    return DistributedDataParallel(Model())


def not_reentrant():
    return DistributedDataParallel(Model(use_reentrant=False), find_unused_parameters=True)


def static_graph():
    return DistributedDataParallel(Model(), find_unused_parameters=True, static_graph=True)


VARIANTS = {v.__name__: v for v in (failing, fixed, not_reentrant, static_graph)}


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
