# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0066"
# title = "all_gather cuts the gradient to the other ranks' samples"
# kind = "by design"
# documented = "https://github.com/pytorch/pytorch/issues/58005"
# upstream.reports = [
#     "https://github.com/facebookresearch/SLIP/issues/31",
#     "https://github.com/facebookresearch/vissl/issues/123",
#     "https://github.com/huggingface/accelerate/issues/1154",
#     "https://github.com/mlfoundations/open_clip/issues/616",
#     "https://github.com/mlfoundations/open_clip/issues/894",
#     "https://github.com/OFA-Sys/Chinese-CLIP/issues/54",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "gather the features, and put this rank's own back in their place"
# raises = "AssertionError"
# match = "expected the gradient 4.0 of one device, got 2.0"
#
# [tool.repro.variants.fixed]
# about = "the all_gather of torch.distributed.nn, which has a backward"
# source = "https://github.com/mlfoundations/open_clip/issues/616"
# ///
"""A contrastive loss over the features of all ranks has gradients that are too small.

Symptom: CLIP or SimCLR on several GPUs learns otherwise than with the same batch on one: the gradients are 1 / world
size of it. With an optimizer that is invariant to scale only clipping and weight decay show it. Silent.

Cause: `distributed.all_gather` writes into plain tensors without a graph. The usual patch, `gathered[rank] = own`, gives
this rank's features a gradient from its own copy of the loss alone; what the other ranks' copies of the loss would add
never comes, and DDP divides by the world size.

Fix: `torch.distributed.nn.functional.all_gather`, whose backward sums the gradients of all ranks.

Watch: no check tells it from a healthy training, since a queue of negatives is made on purpose of gathered tensors
without a graph.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.distributed.nn.functional import all_gather
from torch.nn.parallel import DistributedDataParallel


def failing(features):
    gathered = [torch.zeros_like(features) for _ in range(2)]
    distributed.all_gather(gathered, features)
    gathered[distributed.get_rank()] = features
    return gathered


def fixed(features):
    return all_gather(features)


VARIANTS = {v.__name__: v for v in (failing, fixed)}


def train(variant, strategy, accelerator):
    distributed.init_process_group("gloo")
    layer = nn.Linear(1, 1, bias=False)
    ddp = DistributedDataParallel(layer)
    # Each rank's features are 2w, and the loss is the sum of all features: a gradient of 4.
    features = ddp(torch.full((1, 1), 2.0))
    torch.cat(list(VARIANTS[variant](features))).sum().backward()
    got = layer.weight.grad.item()
    assert got == 4.0, f"expected the gradient 4.0 of one device, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, strategy, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
