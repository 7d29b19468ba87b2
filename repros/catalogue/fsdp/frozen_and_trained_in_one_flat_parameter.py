# /// script
# dependencies = ["torch>=2.6"]
#
# [tool.repro]
# id = "RPR-0187"
# title = "FSDP1 refuses a block with frozen and trained parameters"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/fsdp.html"
# upstream.reports = [
#     "https://github.com/ByteDance-Seed/Bagel/issues/104",
#     "https://github.com/facebookresearch/fairscale/issues/1047",
#     "https://github.com/huggingface/peft/issues/1702",
#     "https://github.com/huggingface/transformers/issues/27542",
#     "https://github.com/pytorch/pytorch/issues/91167",
#     "https://github.com/pytorch/pytorch/issues/100945",
#     "https://github.com/pytorch/pytorch/issues/104690",
# ]
# upstream.related = ["https://github.com/pytorch/pytorch/pull/98221"]
# packages = ["torch"]
# home = "2025-11"
# strategies = ["fsdp"]
# processes = 2
# requires = ["torch>=2.6"]  # FSDP1 on a CPU
#
# [tool.repro.variants.failing]
# about = "freeze one of two layers, then wrap both in one FullyShardedDataParallel"
# raises = "ValueError"
# match = "Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`"
#
# [tool.repro.variants.fixed]
# about = "use_orig_params=True"
# source = "https://github.com/pytorch/pytorch/pull/98221"
#
# [tool.repro.variants.wrapped_apart]
# outcome = "passes"
# about = "a policy that gives the frozen layer a flat parameter of its own"
# source = "https://github.com/pytorch/pytorch/issues/104690"
#
# [tool.repro.variants.two_dtypes]
# outcome = "fails"
# about = "both are trained, one in bfloat16; use_orig_params=True does not help"
# raises = "ValueError"
# match = "Must flatten tensors with uniform dtype but got torch.float32 and torch.bfloat16"
#
# [tool.repro.variants.frozen_later]
# outcome = "fails"
# about = "freeze the layer after the wrapping: no error, and the flat parameter trains it"
# raises = "AssertionError"
# match = "expected the frozen weight to stay at 1.0, got 0.75"
# ///
"""LoRA, a frozen tower or a frozen embedding under FullyShardedDataParallel.

Symptom: `ValueError: Must flatten tensors with uniform requires_grad when use_orig_params=False` from the wrapping, up to
torch 2.0 "FlatParameter requires uniform requires_grad".

Cause: FSDP1 puts all parameters of a wrapped block into one flat parameter, which is one leaf of autograd. A leaf
requires a gradient as a whole, and has one dtype. An adapter shares a block with the layer that it adapts.

Fix: `use_orig_params=True` (accelerate: `fsdp_use_orig_params: true`), which keeps the original parameters as views; a
flat parameter that is trained in part still has memory for all its gradients. Or a wrap policy that gives frozen and
trained layers blocks of their own, such as peft's `fsdp_auto_wrap_policy`. `fully_shard` (FSDP2) has no flat parameter.

Apart: different dtypes of a block are refused in either mode: cast the adapter or the quantised storage to one.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import CustomPolicy


def failing(model):
    model[0].requires_grad_(False)
    return FullyShardedDataParallel(model, device_id=torch.device("cpu"))


def fixed(model):
    model[0].requires_grad_(False)
    return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)


def wrapped_apart(model):
    model[0].requires_grad_(False)
    policy = CustomPolicy(lambda module: module is model[0])
    return FullyShardedDataParallel(model, device_id=torch.device("cpu"), auto_wrap_policy=policy)


def two_dtypes(model):
    model[1].to(torch.bfloat16)
    return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)


def frozen_later(model):
    first = model[0]
    wrapped = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    first.requires_grad_(False)
    return wrapped


VARIANTS = {v.__name__: v for v in (failing, fixed, wrapped_apart, two_dtypes, frozen_later)}


def train(variant):
    distributed.init_process_group("gloo")
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    for layer in model:
        nn.init.ones_(layer.weight)
    model = VARIANTS[variant](model)
    optimizer = torch.optim.SGD((part for part in model.parameters() if part.requires_grad), lr=0.25)
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    with FullyShardedDataParallel.summon_full_params(model):
        got = next(model.parameters()).flatten()[0].item()
    assert got == 1.0, f"expected the frozen weight to stay at 1.0, got {got}"


def main(variant="failing", strategy="fsdp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
