#!/usr/bin/env bash
# DTensor: F.mse_loss of sharded rows has the right value, and a gradient as many times too large as there are shards.
#
# Versions: torch 2.13.0, CPU, Gloo, 2 ranks
# Expected: Value and gradient are those of the whole tensor, as DTensor promises single-device semantics.
# Seen: Value 3.5 as for the whole, gradient twice that of the whole on two shards; smooth_l1 and huber likewise,
#   l1_loss and binary_cross_entropy_with_logits are right.
# Source: torch/distributed/tensor: mse_loss_backward has no rule of its own there, and is sharded through its
#   decomposition (_decompositions.py).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def program(rank, mesh):
    for name, wrong in (("mse_loss", 2.0), ("smooth_l1_loss", 2.0), ("huber_loss", 2.0), ("l1_loss", 1.0)):
        function = getattr(torch.nn.functional, name)
        whole = torch.arange(1.0, 5.0).requires_grad_()
        target = torch.zeros(4)
        value = function(whole, target)
        value.backward()
        sharded = distribute_tensor(whole.detach(), mesh, [Shard(0)]).requires_grad_()
        other = function(sharded, distribute_tensor(target, mesh, [Shard(0)]))
        other.backward()
        ratio = (sharded.grad.full_tensor() / whole.grad).tolist()
        print(f"rank {rank}: {name}: values {value.item()}, {other.full_tensor().item()}, ratio of gradients {ratio}")
        assert value.item() == other.full_tensor().item()
        assert ratio == [wrong] * 4, ratio


def run(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    program(rank, init_device_mesh("cpu", (2,)))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run, (folder + "/store",), 2)
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
