# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0071"
# title = "DDP averages the ranks' means, and weighs samples of uneven ranks unevenly"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/34242",
#     "https://github.com/PrimeIntellect-ai/prime-rl/pull/2562",
#     "https://github.com/vllm-project/speculators/issues/942",
# ]
# upstream.related = ["https://github.com/huggingface/transformers/pull/34373"]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cpu", "cuda", "sim"]
# processes = 2
# requires = ["torch>=2.1"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "a mean loss over three samples on rank 0 and one on rank 1"
# raises = "AssertionError"
# match = "expected the gradient 2.0 of the mean over four samples, got 3.0"
#
# [tool.repro.variants.fixed]
# about = "divide the sum by the number of all ranks' samples, times the world size"
# source = "https://github.com/vllm-project/speculators/issues/942"
#
# [tool.repro.variants.summed]
# outcome = "fails"
# about = "a sum as the loss, of which DDP makes the mean over ranks"
# raises = "AssertionError"
# match = "expected the gradient 2.0 of the mean over four samples, got 4.0"
#
# [tool.repro.variants.even]
# outcome = "passes"
# contrast = true
# about = "two samples on each rank: the mean of the means is the mean"
# ///
"""Padding, packed sequences and last batches make DDP weigh samples by how many others share their rank.

Symptom: losses and weights differ from a training on one device with the same global batch, the more the ranks' numbers
of samples or tokens differ. Silent.

Cause: DDP, and FSDP likewise, divides the sum of the ranks' gradients by the world size. Where each rank's loss is a mean over its own
samples, a sample counts 1 / (its rank's number * world size) instead of 1 / all.

Fix: sum the losses and divide by the all-reduced number of samples or tokens, times the world size that DDP divides by.
With gradient accumulation the number is that of all its micro-batches. transformers' Trainer does it itself since
transformers#34373 (`average_tokens_across_devices`, by default True in 4.57 and 5).

Watch: no check tells it from a healthy training, since ranks with different numbers of samples are usual, and how a
loss is normalised is a choice.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel

UNEVEN = [[1.0, 1.0, 1.0], [5.0]]
EVEN = [[1.0, 1.0], [1.0, 5.0]]


def failing(losses):
    return losses.mean()


def fixed(losses):
    number = torch.tensor(losses.numel(), device=losses.device)
    distributed.all_reduce(number)
    return losses.sum() / number * distributed.get_world_size()


def summed(losses):
    return losses.sum()


def even(losses):
    return losses.mean()


VARIANTS = {v.__name__: v for v in (failing, fixed, summed, even)}


def train(variant, accelerator):
    distributed.init_process_group(
        "gloo" if accelerator == "cpu" else distributed.Backend.default_device_backend_map[accelerator]
    )
    rank = distributed.get_rank()
    device = torch.device(accelerator) if accelerator == "cpu" else torch.device(accelerator, rank)
    ddp = DistributedDataParallel(nn.Linear(1, 1, bias=False, device=device))
    samples = torch.tensor((EVEN if variant == "even" else UNEVEN)[rank], device=device).unsqueeze(1)
    # The output is w * x: the gradient of a sample is x, and the mean of 1, 1, 1 and 5 is 2.
    VARIANTS[variant](ddp(samples)).backward()
    got = ddp.module.weight.grad.item()
    assert got == 2.0, f"expected the gradient 2.0 of the mean over four samples, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
