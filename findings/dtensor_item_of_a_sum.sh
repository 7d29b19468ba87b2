#!/usr/bin/env bash
# DTensor: item() of a sum over a sharded tensor is the rank's own part; full_tensor().item() is the sum.
#
# Versions: torch 2.13.0, CPU, Gloo, 2 ranks
# Expected: item() gives the sum, 28, or raises since the value is Partial.
# Seen: 6 on rank 0 and 22 on rank 1. A stopping rule, a logged norm or a clipping factor from it differs by rank.
# Source: torch/distributed/tensor/_sharding_prop.py, the special case for aten._local_scalar_dense.
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
    rows = distribute_tensor(torch.arange(8.0), mesh, [Shard(0)])
    own, whole = rows.sum().item(), rows.sum().full_tensor().item()
    print(f"rank {rank}: sum().item() {own}, sum().full_tensor().item() {whole}")
    assert own == (6.0, 22.0)[rank], own
    assert whole == 28.0, whole


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
