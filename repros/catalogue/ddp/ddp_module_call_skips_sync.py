# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0017"
# title = "Calling ddp.module bypasses DDP: no gradient is ever synchronised"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/kohya-ss/sd-scripts/issues/924",
#     "https://github.com/huggingface/trl/issues/7245",
#     "https://github.com/huggingface/trl/issues/5282",
# ]
# upstream.related = ["https://github.com/pytorch/pytorch/pull/60921"]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["gradients_differ_bypassed"]
#
# [tool.repro.variants.failing]
# about = "the training loop calls ddp.module"
# raises = "AssertionError"
# match = [
#     "step 0: expected gradient 2.0, the mean of 1 and 3, got 1.0",
#     "step 0: expected gradient 2.0, the mean of 1 and 3, got 3.0",
# ]
#
# [tool.repro.variants.fixed]
# about = "the training loop calls ddp"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
#
# [tool.repro.variants.wrapped_first]
# outcome = "fails"
# about = "one forward through ddp, then ddp.module in the training loop"
# raises = "AssertionError"
# match = [
#     "step 1: expected gradient 2.0, the mean of 1 and 3, got 1.0",
#     "step 1: expected gradient 2.0, the mean of 1 and 3, got 3.0",
# ]
# claim = "the wrapper's forward need not be called for gradients to be synchronised"
# source = "https://github.com/k2-fsa/icefall/issues/226"
#
# [tool.repro.variants.group_of_one]
# outcome = "passes"
# contrast = true
# about = "the failing code in a group of one rank, as in a first test on one GPU: there is nothing to see"
# ///
"""A training loop that unwraps its DDP model trains every rank on its own.

Symptom: several GPUs learn like one: the ranks' losses and weights drift apart. Silent.

Cause: `DistributedDataParallel.forward` prepares the reducer for the backward that follows. `ddp.module(x)`, written
to reach a method or attribute of the model, is a plain call: the reducer's hooks are there, but it is not expecting a
backward. The preparation lasts for one backward, so a forward through the wrapper hides the error for one step only.
A test on one GPU shows nothing.

Fix: call the wrapper; give the module's `forward` a switch for what else it should do.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(ddp, x):
    return ddp.module(x)


def fixed(ddp, x):
    return ddp(x)


def wrapped_first(ddp, x, done=[]):  # noqa: B006 - remembers that it was called
    done.append(x)
    return ddp(x) if len(done) == 1 else ddp.module(x)


def group_of_one(ddp, x):
    return ddp.module(x)


VARIANTS = {v.__name__: v for v in (failing, fixed, wrapped_first, group_of_one)}


def train(variant):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    layer = nn.Linear(1, 1, bias=False)
    alone = [distributed.new_group([other]) for other in range(2)][rank]
    ddp = DistributedDataParallel(layer, process_group=alone if variant == "group_of_one" else None)
    forward = VARIANTS[variant]
    # The output is w * x: the gradient of w is x, 1 on rank 0 and 3 on rank 1.
    x = torch.full((1, 1), 1.0 + 2.0 * rank)
    for step in range(2):
        layer.zero_grad()
        forward(ddp, x).sum().backward()
        got = layer.weight.grad.item()
        if variant == "group_of_one":
            assert got == x.item(), f"step {step}: expected the rank's own gradient {x.item()}, got {got}"
            continue
        assert got == 2.0, f"step {step}: expected gradient 2.0, the mean of 1 and 3, got {got} on rank {rank}"
    distributed.barrier()  # rank 0 may host the store, which another rank still uses


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
