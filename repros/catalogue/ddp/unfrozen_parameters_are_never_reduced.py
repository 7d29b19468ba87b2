# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0077"
# title = "Parameters that are unfrozen after the wrapping are never reduced by DDP"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/12603",
#     "https://github.com/facebookresearch/detectron2/issues/2486",
#     "https://github.com/huggingface/transformers/issues/416",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20340",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cpu", "cuda", "sim"]
# processes = 2
# requires = ["torch>=2.1"]
# silent = true
# finds = ["gradients_differ_unfrozen"]
#
# [tool.repro.variants.failing]
# about = "wrap with a frozen layer, and unfreeze it before the second epoch"
# raises = "AssertionError"
# match = [
#     "expected gradient 2.0, the mean of 1 and 3, got 1.0",
#     "expected gradient 2.0, the mean of 1 and 3, got 3.0",
# ]
#
# [tool.repro.variants.fixed]
# about = "wrap the module anew after unfreezing"
#
# [tool.repro.variants.find_unused]
# outcome = "fails"
# about = "find_unused_parameters=True looks among the parameters that were there to be reduced"
#
# [tool.repro.variants.frozen_after_wrapping]
# outcome = "passes"
# about = "wrap with everything trainable, then freeze, with find_unused_parameters=True"
# ///
"""Layers that are unfrozen in the course of a training drift apart between the ranks.

Symptom: from the unfreezing on the ranks' weights of these layers differ, and the saved model is rank 0's. Silent.

Cause: DDP's reducer takes the parameters that require a gradient when the module is wrapped, and hooks those. A
parameter that requires one later has no hook and is in no bucket: its gradient stays the rank's own.

Fix: wrap again after each change of `requires_grad`, or wrap while everything is trainable and freeze afterwards.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(model):
    model[0].requires_grad_(False)
    ddp = DistributedDataParallel(model)
    return ddp, lambda: model[0].requires_grad_(True) and ddp


def fixed(model):
    model[0].requires_grad_(False)
    DistributedDataParallel(model)
    return model, lambda: DistributedDataParallel(model.requires_grad_(True))


def find_unused(model):
    model[0].requires_grad_(False)
    ddp = DistributedDataParallel(model, find_unused_parameters=True)
    return ddp, lambda: model[0].requires_grad_(True) and ddp


def frozen_after_wrapping(model):
    ddp = DistributedDataParallel(model, find_unused_parameters=True)
    model[0].requires_grad_(False)
    return ddp, lambda: model[0].requires_grad_(True) and ddp


VARIANTS = {v.__name__: v for v in (failing, fixed, find_unused, frozen_after_wrapping)}


def train(variant, accelerator):
    distributed.init_process_group(
        "gloo" if accelerator == "cpu" else distributed.Backend.default_device_backend_map[accelerator]
    )
    rank = distributed.get_rank()
    device = torch.device(accelerator) if accelerator == "cpu" else torch.device(accelerator, rank)
    model = nn.Sequential(*(nn.Linear(1, 1, bias=False, device=device) for _ in range(2)))
    for layer in model:
        nn.init.ones_(layer.weight)
    wrapped, unfreeze = VARIANTS[variant](model)
    x = torch.full((1, 1), 1.0 + 2.0 * rank, device=device)  # the gradient of each weight: 1 on rank 0, 3 on rank 1
    wrapped(x).sum().backward()
    ddp = unfreeze()
    model.zero_grad()
    ddp(x).sum().backward()
    got = model[0].weight.grad.item()
    assert got == 2.0, f"expected gradient 2.0, the mean of 1 and 3, got {got} on rank {rank}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
