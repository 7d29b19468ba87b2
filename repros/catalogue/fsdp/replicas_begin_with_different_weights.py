# /// script
# dependencies = ["torch>=2.6"]
#
# [tool.repro]
# id = "RPR-0061"
# title = "The replicas of a hybrid sharded model begin apart and never meet"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/distributed.fsdp.fully_shard.html"
# upstream.reports = [
#     "https://github.com/allenai/OLMo-core/pull/319",
#     "https://github.com/mosaicml/composer/pull/2812",
#     "https://github.com/mosaicml/llm-foundry/pull/830",
# ]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/pull/125431",
#     "https://github.com/pytorch/torchtitan/issues/670",
#     "https://github.com/pytorch/torchtitan/issues/1777",
#     "https://github.com/pytorch/pytorch/pull/178569",
#     "https://github.com/volcengine/verl/pull/508",
# ]
# packages = ["torch"]
# home = "2025-11"
# strategies = ["fsdp2"]
# devices = ["cpu", "cuda", "sim"]
# processes = 2
# requires = ["torch>=2.9"]  # fully_shard on a CPU
# silent = true
#
# [tool.repro.variants.failing]
# about = "each rank draws its weights with a seed of its own"
# raises = "AssertionError"
# match = "expected replicas that agree after a step, got 1.0 between their weights"
#
# [tool.repro.variants.fixed]
# about = "broadcast the weights to the other replicas before they are sharded"
# source = "https://github.com/pytorch/pytorch/issues/125431"
#
# [tool.repro.variants.one_seed]
# outcome = "passes"
# about = "one seed on all ranks while the weights are drawn"
# ///
"""With hybrid sharding (HSDP) each group of ranks trains a model of its own.

Symptom: the loss differs between replicas, and a checkpoint has the weights of one of them. Silent.

Cause: `fully_shard` takes each rank's values as they are; unlike DDP it broadcasts nothing. On a two-dimensional mesh
the gradients are averaged over the replicas, so all take the same steps, from where each began. With `seed + rank`, which
is usual for the data, they begin at different weights, and stay as far apart.

Fix: broadcast parameters and buffers over the replicate dimension, or draw the weights with the same seed everywhere.
FSDP1 has `sync_module_states=True`.

Watch: there is no check for it yet: shards on the ranks differ, and one would have to know which of them are replicas.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def failing(layer, rank):
    nn.init.constant_(layer.weight, rank)  # what a seed of its own does


def fixed(layer, rank):
    nn.init.constant_(layer.weight, rank)
    distributed.broadcast(layer.weight.data, src=0)


def one_seed(layer, rank):
    nn.init.constant_(layer.weight, 0)


VARIANTS = {v.__name__: v for v in (failing, fixed, one_seed)}


def train(variant, strategy, accelerator):
    distributed.init_process_group(
        "gloo" if accelerator == "cpu" else distributed.Backend.default_device_backend_map[accelerator]
    )
    rank = distributed.get_rank()
    device = torch.device(accelerator) if accelerator == "cpu" else torch.device(accelerator, rank)
    if accelerator != "cpu":
        torch.get_device_module(device).set_device(device)
    layer = nn.Linear(1, 1, bias=False, device=device)
    VARIANTS[variant](layer, rank)
    # Two replicas of one shard each.
    fully_shard(layer, mesh=init_device_mesh(device.type, (2, 1), mesh_dim_names=("replicate", "shard")))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        layer(torch.full((1, 1), 1.0 + rank, device=device)).sum().backward()
        optimizer.step()
    weights = [torch.zeros(1, 1, device=device) for _ in range(2)]
    distributed.all_gather(weights, layer.weight.to_local().detach())
    got = round((weights[1] - weights[0]).item(), 4)
    assert got == 0.0, f"expected replicas that agree after a step, got {got} between their weights"


def main(variant="failing", strategy="fsdp2", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, strategy, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
