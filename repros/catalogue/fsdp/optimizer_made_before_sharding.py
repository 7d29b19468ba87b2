# /// script
# dependencies = ["torch>=2.6"]
#
# [tool.repro]
# id = "RPR-0076"
# title = "An optimizer that was made before the model was sharded trains nothing"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/fsdp.html"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/2665",
#     "https://github.com/huggingface/accelerate/issues/3256",
#     "https://github.com/huggingface/accelerate/pull/3213",
#     "https://github.com/pytorch/pytorch/issues/149205",
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
# about = "make the optimizer, then shard the model"
# raises = "AssertionError"
# match = "expected the weights to sum to 2.0 after eight steps, got 4.0"
#
# [tool.repro.variants.fixed]
# about = "shard the model, then make the optimizer"
# source = "https://pytorch.org/docs/stable/fsdp.html"
#
# [tool.repro.variants.original_parameters]
# outcome = "passes"
# about = "FSDP1 with use_orig_params=True keeps the parameters that the optimizer holds"
# strategies = ["fsdp"]
# ///
"""A sharded model does not learn, and nothing is wrong with its gradients.

Symptom: the loss stays where it was, the gradients are there, the optimizer's steps raise nothing. Silent.

Cause: FSDP puts flat parameters in the place of the module's, and `fully_shard` puts `DTensor` parameters there. An
optimizer that was made before holds those of before, which no module uses and which never get a gradient.

Fix: make the optimizer last. With FSDP1, `use_orig_params=True` keeps the parameter objects.

Watch: `steps_without_gradients` finds it, whatever the cause is, and so cannot name it.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard


def shard(model, strategy, **options):
    return fully_shard(model) or model if strategy == "fsdp2" else FullyShardedDataParallel(model, **options)


def failing(model, strategy, options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    return shard(model, strategy, **options), optimizer


def fixed(model, strategy, options):
    model = shard(model, strategy, **options)
    return model, torch.optim.SGD(model.parameters(), lr=0.25)


def original_parameters(model, strategy, options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    return shard(model, strategy, use_orig_params=True, **options), optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed, original_parameters)}


def train(variant, strategy, accelerator):
    distributed.init_process_group(
        "gloo" if accelerator == "cpu" else distributed.Backend.default_device_backend_map[accelerator]
    )
    rank = distributed.get_rank()
    device = torch.device(accelerator) if accelerator == "cpu" else torch.device(accelerator, rank)
    if accelerator != "cpu":
        torch.get_device_module(device).set_device(device)
    layer = nn.Linear(4, 1, bias=False, device=device)
    nn.init.ones_(layer.weight)
    options = {"device_id": device} if strategy == "fsdp" else {}
    model, optimizer = VARIANTS[variant](layer, strategy, options)
    for _ in range(8):
        optimizer.zero_grad()
        model(torch.full((1, 4), 0.25, device=device)).sum().backward()
        optimizer.step()  # takes a quarter of the gradient, 0.25, from each of four weights
    weights = sum(parameter.detach().sum() for parameter in model.parameters())
    if strategy == "fsdp2":
        weights = weights.full_tensor()
    else:
        distributed.all_reduce(weights)
    got = weights.item()
    assert got == 2.0, f"expected the weights to sum to 2.0 after eight steps, got {got}"


def main(variant="failing", strategy="fsdp2", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, strategy, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
