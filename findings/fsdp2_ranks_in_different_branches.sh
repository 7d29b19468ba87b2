#!/usr/bin/env bash
# FSDP2: ranks that use different layers of one group get the gradients of different layers added up.
#
# Versions: torch 2.13.0, CPU, Gloo, 2 ranks
# Expected: DDP would refuse or wait (unused parameters). So an error, a hang, or None and zero for a layer that a
#   rank did not use: a gets 1/2, b gets 100/2.
# Seen: One reduce-scatter runs over what each rank happens to have, by position. Rank 0 used layer a, rank 1 layer b;
#   rank 0 holds 50.5 as the gradient of a and none of b, rank 1 the reverse. No error.
# Source: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, post_backward: parameters without a gradient are
#   left out of the reduction unless reduce_scatter_unused_params is on.
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


class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = torch.nn.ModuleDict({name: torch.nn.Linear(1, 1, bias=False) for name in "ab"})

    def forward(self, rows, name):
        return self.experts[name](rows)


def program(rank, mesh):
    model = Experts()
    fully_shard(model, mesh=mesh)
    rows = torch.full((1, 1), 1.0 if rank == 0 else 100.0)
    model(rows, "ab"[rank]).sum().backward()
    for name, weight in model.named_parameters():
        used = name == f"experts.{'ab'[rank]}.weight"
        gradient = None if weight.grad is None else weight.grad.full_tensor().item()
        print(f"rank {rank}: {name} used: {used}, gradient: {gradient}")
        assert gradient == (50.5 if used else None), gradient


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
