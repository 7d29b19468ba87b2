#!/usr/bin/env bash
# FSDP2: a forward without gradients between backward and step hides that step from the next training forward.
#
# Versions: torch 2.13.0, CPU, Gloo, 2 ranks
# Expected: A validation forward under no_grad after backward() reads the weights; losses of the training do not
#   depend on it.
# Seen: The root module stays unsharded after that forward. The step changes the shards, and the next forward computes
#   with the old full weights: losses 4.0, 4.0, 2.56 in the place of 4.0, 2.56, 1.64. No error, no warning.
# Source: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (unshard returns early where parameters are
#   unsharded), _fsdp_state.py (the root keeps its parameters after a forward).
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


def losses(look):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
    torch.nn.init.ones_(model[0].weight)
    fully_shard(model, mesh=MESH[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = torch.ones(1, 2)
    seen = []
    for _ in range(3):
        loss = model(rows).pow(2).mean()
        seen.append(round(loss.item(), 2))
        loss.backward()
        if look:
            with torch.no_grad():
                model(rows)
        optimizer.step()
        optimizer.zero_grad()
    return seen


MESH = []


def program(rank, mesh):
    MESH.append(mesh)
    plain, looked = losses(look=False), losses(look=True)
    if rank == 0:
        print("losses:", plain, "with a forward before each step:", looked)
    assert plain == [4.0, 2.56, 1.64], plain
    assert looked == [4.0, 4.0, 2.56], looked


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
