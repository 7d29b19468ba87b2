#!/usr/bin/env bash
# PyTorch Geometric adds numbers to an attribute's values because its name contains "index" or "batch".
#
# Versions: torch 2.13.0, torch_geometric 2.8.1, CPU
# Expected: The loader concatenates float attributes of graphs; only integers that refer to nodes are shifted.
# Seen: `refractive_index` 1.5 of three graphs with three nodes each arrives as 1.5, 4.5, 7.5: the number of nodes is
#   added. `batch_effect` 0.5 arrives as 0.5, 1.5, 2.5: its largest value plus one, as an integer, is added. Their dtype
#   does not matter, and nothing is printed. `refraction` and `effect` stay as they are.
# Source: torch_geometric/data/data.py, Data.__inc__: `'index' in key`, `'batch' in key`. The documentation names the
#   first for connectivity alone.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 torch_geometric==2.8.1
cat >"$folder/program.py" <<'PROGRAM'
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

edges = torch.tensor([[0, 1], [1, 2]])
values = {"refractive_index": 1.5, "refraction": 1.5, "batch_effect": 0.5, "effect": 0.5}
graphs = [
    Data(x=torch.ones(3, 2), edge_index=edges, **{name: torch.tensor([value]) for name, value in values.items()})
    for _ in range(3)
]
batch = next(iter(DataLoader(graphs, batch_size=3)))
seen = {name: batch[name].tolist() for name in values}
print(seen)
assert seen["refractive_index"] == [1.5, 4.5, 7.5]
assert seen["batch_effect"] == [0.5, 1.5, 2.5]
assert seen["refraction"] == [1.5] * 3
assert seen["effect"] == [0.5] * 3
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
