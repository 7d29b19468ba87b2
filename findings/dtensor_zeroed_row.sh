#!/usr/bin/env bash
# DTensor: zeroing a row of a weight in place does nothing where the rows are sharded; zeroing a column works.
#
# Versions: torch 2.13.0, CPU, Gloo, 2 ranks
# Expected: weight[0].zero_() is how a padding row is cleared. It writes, or raises because the view cannot be
#   written.
# Seen: select() over the sharded dimension redistributes, so zero_() writes into a copy. The row stays, without a
#   word. A column of the same weight is zeroed.
# Source: torch/distributed/tensor/_ops/_tensor_ops.py, select.
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
    weight = distribute_tensor(torch.ones(4, 3), mesh, [Shard(0)])
    with torch.no_grad():
        weight[0].zero_()
    rows = weight.full_tensor().sum().item()
    with torch.no_grad():
        weight[:, 0].zero_()
    columns = weight.full_tensor().sum().item()
    print(f"rank {rank}: sum after a row was zeroed {rows}, after a column {columns}")
    assert (rows, columns) == (12.0, 8.0), (rows, columns)


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
