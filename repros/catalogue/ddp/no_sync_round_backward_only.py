# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0014"
# title = "no_sync around the backward pass alone does not stop synchronisation"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync"
# upstream.reports = [
#     "https://github.com/pytorch/PiPPy/issues/1133",
#     "https://github.com/speechbrain/speechbrain/issues/1802",
# ]
# upstream.related = ["https://github.com/huggingface/accelerate/pull/1726"]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["no_sync_too_late"]
#
# [tool.repro.variants.failing]
# about = "the forward runs outside no_sync, the backward inside"
# raises = "AssertionError"
# match = [
#     "expected the rank's own gradient 1.0, got 2.0",
#     "expected the rank's own gradient 3.0, got 2.0",
# ]
#
# [tool.repro.variants.fixed]
# about = "forward and backward inside no_sync"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
#
# [tool.repro.variants.flag_set_between]
# outcome = "fails"
# about = "accumulate two batches, with require_backward_grad_sync set between forward and backward: the last is not reduced"
# raises = "AssertionError"
# match = [
#     "expected gradient 4.0, twice the mean of 1 and 3, got 3.0",
#     "expected gradient 4.0, twice the mean of 1 and 3, got 5.0",
# ]
# finds = ["no_sync_too_late", "gradients_differ_no_sync"]
# source = "https://github.com/karpathy/build-nanogpt/pull/30"
#
# [tool.repro.variants.flag_set_before]
# outcome = "passes"
# about = "the same flag, set before the forward"
# source = "https://github.com/karpathy/build-nanogpt/pull/30"
# ///
"""Gradient accumulation under DDP pays for a reduction in every backward although no_sync is used.

Symptom: no speed-up from `no_sync`; gradients are the mean over the ranks where the rank's own are expected (for a
norm, for clipping per rank). Set by hand between forward and backward, DDP's flag does harm: the weights of the ranks
drift apart. Silent.

Cause: `DistributedDataParallel.forward` reads `require_backward_grad_sync` and prepares the reducer; `no_sync` clears
that flag inside its block. Around the backward alone it comes too late: the reducer's hooks are armed by then. The
documentation of `no_sync` asks for the forward inside it, "or else gradients will still be synchronized". A flag that
goes up for the last batch of an accumulation, but after its forward, leaves that batch unreduced.

Fix: put the forward inside `no_sync`, too.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(model, x):
    loss = model(x).sum()
    with model.no_sync():
        loss.backward()


def fixed(model, x):
    with model.no_sync():
        loss = model(x).sum()
        loss.backward()


def flag_set_between(model, x):
    for last in (False, True):
        loss = model(x).sum()
        model.require_backward_grad_sync = last
        loss.backward()


def flag_set_before(model, x):
    for last in (False, True):
        model.require_backward_grad_sync = last
        model(x).sum().backward()


VARIANTS = {v.__name__: v for v in (failing, fixed, flag_set_between, flag_set_before)}


def train(variant):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    layer = nn.Linear(1, 1, bias=False)
    # Its output is w * x: the gradient of w is x, 1 on rank 0 and 3 on rank 1, their mean is 2.
    own = 1.0 + 2.0 * rank
    VARIANTS[variant](DistributedDataParallel(layer), torch.full((1, 1), own))
    got = layer.weight.grad.item()
    if variant.startswith("flag"):
        assert got == 4.0, f"expected gradient 4.0, twice the mean of 1 and 3, got {got}"
        return
    assert got == own, f"expected the rank's own gradient {own}, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
