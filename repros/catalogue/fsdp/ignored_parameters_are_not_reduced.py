# /// script
# dependencies = ["torch>=2.6"]
#
# [tool.repro]
# id = "RPR-0088"
# title = "FSDP does not reduce gradients of parameters that it ignores"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/fsdp.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/98281",
#     "https://github.com/pytorch/pytorch/issues/104494",
# ]
# packages = ["torch"]
# home = "2025-11"
# strategies = ["fsdp", "fsdp2"]
# devices = ["cpu", "cuda", "sim"]
# processes = 2
# requires = ["torch>=2.9"]  # fully_shard on a CPU
# silent = true
#
# [tool.repro.variants.failing]
# about = "ignore a layer, and train it with the others"
# raises = "AssertionError"
# match = [
#     "expected gradient 4.0, the mean of 2 and 6, got 2.0",
#     "expected gradient 4.0, the mean of 2 and 6, got 6.0",
# ]
#
# [tool.repro.variants.fixed]
# about = "reduce the ignored gradients by hand"
# source = "https://github.com/pytorch/pytorch/issues/98281"
#
# [tool.repro.variants.sharded]
# outcome = "passes"
# contrast = true
# about = "a layer that is not ignored is reduced"
# ///
"""A layer that FSDP ignores is trained by each rank on its own.

Symptom: the ranks' copies of the ignored parameters drift apart; the checkpoint has those of one rank. Silent.

Cause: `ignored_states`, `ignored_modules` and `ignored_params` keep parameters out of the sharding, and with that out
of everything that FSDP does: the reduction of gradients is a part of it, and none takes its place.

Fix: all-reduce these gradients before the step, or shard the layer.

Watch: there is no check for it yet: gradients of parameters that FSDP ignores may be parts, which differ between ranks
on purpose.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard


def failing(layer):
    return [layer.weight], lambda: None


def fixed(layer):
    return [layer.weight], lambda: distributed.all_reduce(layer.weight.grad.div_(distributed.get_world_size()))


def sharded(layer):
    return [], lambda: None


VARIANTS = {v.__name__: v for v in (failing, fixed, sharded)}


def full(gradient, strategy):
    return gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient


def train(variant, strategy, accelerator):
    distributed.init_process_group(
        "gloo" if accelerator == "cpu" else distributed.Backend.default_device_backend_map[accelerator]
    )
    rank = distributed.get_rank()
    device = torch.device(accelerator) if accelerator == "cpu" else torch.device(accelerator, rank)
    if accelerator != "cpu":
        torch.get_device_module(device).set_device(device)
    model = nn.Sequential(*(nn.Linear(1, 1, bias=False, device=device) for _ in range(2)))
    for layer in model:
        nn.init.ones_(layer.weight)
    ignored, reduce = VARIANTS[variant](model[0])
    if strategy == "fsdp2":
        fully_shard(model, ignored_params=set(ignored))
    else:
        model = FullyShardedDataParallel(model, ignored_states=ignored, device_id=device, use_orig_params=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for _ in range(2):
        optimizer.zero_grad()
        # The gradient of the first weight is x: 2 on rank 0, 6 on rank 1.
        model(torch.full((1, 1), 2.0 + 4.0 * rank, device=device)).sum().backward()
        reduce()
        optimizer.step()
    gradient = next(model.parameters()).grad
    if gradient is not None and gradient.numel():  # with FSDP1 a rank may hold no part of a sharded weight
        got = full(gradient, strategy).item()
        assert got == 4.0, f"expected gradient 4.0, the mean of 2 and 6, got {got} on rank {rank}"


def main(variant="failing", strategy="fsdp2", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, strategy, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
