# /// script
# dependencies = ["torch>=2.6"]
#
# [tool.repro]
# id = "RPR-0188"
# title = "torch's clip_grad_norm_ clips each shard of FSDP1 by a norm of its own"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/fsdp.html"
# upstream.reports = [
#     "https://github.com/PrimeIntellect-ai/OpenDiloco/pull/6",
#     "https://github.com/pytorch/pytorch/issues/72548",
# ]
# upstream.related = [
#     "https://github.com/pytorch/torchtitan/issues/766",
#     "https://github.com/pytorch/pytorch/issues/170862",
# ]
# packages = ["torch"]
# home = "2025-11"
# strategies = ["fsdp"]
# processes = 2
# requires = ["torch>=2.6"]  # FSDP1 on a CPU
# silent = true
#
# [tool.repro.variants.failing]
# about = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
# raises = "AssertionError"
# match = "expected a norm of 1.0 after clipping, got 1.4142"
#
# [tool.repro.variants.fixed]
# about = "model.clip_grad_norm_(1.0)"
# source = "https://github.com/PrimeIntellect-ai/OpenDiloco/pull/6"
#
# [tool.repro.variants.original_parameters]
# outcome = "fails"
# about = "the same with use_orig_params=True, whose parameters are the rank's parts, too"
#
# [tool.repro.variants.fsdp2]
# outcome = "passes"
# contrast = true
# about = "fully_shard (FSDP2): the norm of a DTensor is that of all shards"
# requires = ["torch>=2.9"]
# ///
"""Clipping that lets more through the more ranks there are, and turns the gradient.

Symptom: the logged norm differs between ranks, and is smaller than on one GPU. With a small `max_norm` the gradients
after clipping are too large by up to the square root of the number of ranks. Silent.

Cause: FSDP1's parameters are plain tensors that hold the rank's own shard, and `clip_grad_norm_` takes the norm of what
it is given. Each rank divides its shard by its own norm: a shard with large gradients is cut, another one is not, so the
direction of the whole gradient changes as well.

Fix: the wrapped model's own method, `model.clip_grad_norm_(max_norm)`, called on the root and on all ranks; in
accelerate `accelerator.clip_grad_norm_`, in Lightning `FSDPStrategy` refuses the wrong one. FSDP2 and DTensor need none
of it, as long as `.full_tensor()` is called on the returned norm before it is logged.

Watch: there is no check for it yet: flat parameters' gradients differ between ranks in a healthy program, too.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard


def wrapped(layer, **options):
    return FullyShardedDataParallel(layer, device_id=torch.device("cpu"), **options)


def failing(layer):
    model = wrapped(layer)
    return model, lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def fixed(layer):
    model = wrapped(layer)
    return model, lambda: model.clip_grad_norm_(1.0)


def original_parameters(layer):
    model = wrapped(layer, use_orig_params=True)
    return model, lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def fsdp2(layer):
    model = fully_shard(layer)
    return model, lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0)


VARIANTS = {v.__name__: v for v in (failing, fixed, original_parameters, fsdp2)}


def train(variant):
    distributed.init_process_group("gloo")
    model, clip = VARIANTS[variant](nn.Linear(2, 2, bias=False))
    # The gradients of both rows are [3, 4]: a norm of 5 in each rank's shard, and of 7.07 in the whole.
    model(torch.tensor([[3.0, 4.0]])).sum().backward()
    clip()
    grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    square = sum((getattr(grad, "_local_tensor", grad) ** 2).sum() for grad in grads)
    distributed.all_reduce(square)
    got = round(square.sqrt().item(), 4)
    assert got == 1.0, f"expected a norm of 1.0 after clipping, got {got}"


def main(variant="failing", strategy="fsdp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
