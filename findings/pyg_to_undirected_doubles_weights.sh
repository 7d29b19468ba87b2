#!/usr/bin/env bash
# ToUndirected doubles the weights and features of edges that a graph has in both directions already.
#
# Versions: torch 2.13.0, torch_geometric 2.8.1, CPU
# Expected: a graph that is undirected stays as it is; `is_undirected()` says it is.
# Seen: each edge's weight and features become twice what they were, and twice again with each further call, so a transform
#   in a dataset's pipeline and one more in a script give four times the weights. One-hot edge types become 2. In a graph
#   with both kinds of edges only those with a counterpart change. `edge_index` is the same before and after.
# Source: torch_geometric/utils/undirected.py, whose default `reduce="add"` joins each edge with its own reverse.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 torch_geometric==2.8.1 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import ToUndirected

edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
data = Data(edge_index=edges, edge_weight=torch.tensor([1.0, 1.0, 5.0, 5.0]), num_nodes=3)
assert data.is_undirected()
once = ToUndirected()(data.clone())
assert torch.equal(once.edge_index, edges)
assert once.edge_weight.tolist() == [2.0, 2.0, 10.0, 10.0], once.edge_weight
assert ToUndirected()(once).edge_weight.tolist() == [4.0, 4.0, 20.0, 20.0]

mixed = Data(edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]), edge_weight=torch.ones(3), num_nodes=3)
assert ToUndirected()(mixed).edge_weight.tolist() == [2.0, 2.0, 1.0, 1.0]
assert ToUndirected(reduce="mean")(data.clone()).edge_weight.tolist() == [1.0, 1.0, 5.0, 5.0]
print("weights of an undirected graph are doubled by each ToUndirected")
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
