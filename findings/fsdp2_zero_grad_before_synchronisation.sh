#!/usr/bin/env bash
# FSDP2: zero_grad() does not drop gradients that wait for a synchronisation.
#
# Versions: torch 2.13.0, CPU, Gloo, 2 ranks
# Expected: set_requires_gradient_sync(False), a backward, zero_grad(): the micro-batch is dropped, as under DDP's
#   no_sync().
# Seen: The unsharded gradient waits in the parameter group, where zero_grad() does not look. The next synchronised
#   backward adds it: 1001 for 1.
# Source: torch/distributed/fsdp/_fully_shard/_fsdp_param.py, unsharded_accumulated_grad.
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
from torch.distributed.fsdp import fully_shard


def program(rank, mesh):
    model = torch.nn.Linear(1, 1, bias=False)
    fully_shard(model, mesh=mesh)
    model.set_requires_gradient_sync(False)
    model(torch.full((1, 1), 1000.0)).sum().backward()
    model.zero_grad()  # the micro-batch is to be dropped
    model.set_requires_gradient_sync(True)
    model(torch.full((1, 1), 1.0)).sum().backward()
    gradient = model.weight.grad.full_tensor().item()
    print(f"rank {rank}: gradient {gradient}")
    assert gradient == 1001.0, gradient


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
