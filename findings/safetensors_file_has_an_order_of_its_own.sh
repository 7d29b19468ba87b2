#!/usr/bin/env bash
# A safetensors file gives its tensors in an order of its own, by the size of their dtype and then by name, so pairing
# loaded values with parameters() by position swaps weights and biases.
#
# Versions: safetensors 0.8.0, torch 2.13.0
# Expected: load_file returns the tensors in the order in which save_file got them, as torch.load does for the same
#   state_dict (a dict of the module's order).
# Seen: wider dtypes come first, and names are sorted within a dtype: bias before weight, `layers.10` before `layers.2`,
#   and an int64 counter of a BatchNorm before all weights. The same values as a .pt file keep the module's order. Two
#   tensors of one shape that are paired by position are exchanged without an error.
# Source: safetensors/src/tensor.rs, prepare (the sort by dtype, then by name); safetensors#357 asks for it;
#   chaiNNer-org/chaiNNer#2272 met swapped weights and biases.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 safetensors==0.8.0
cat >"$folder/program.py" <<'PROGRAM'
import torch
from safetensors.torch import load_file, save_file
from torch import nn

model = nn.Sequential(*(nn.Linear(1, 1) for _ in range(11)), nn.BatchNorm1d(1))
state = model.state_dict()
torch.save(state, "state.pt")
save_file(state, "state.safetensors")
own, loaded = list(torch.load("state.pt")), list(load_file("state.safetensors"))
print("module and .pt:", own[:4], "...", own[-1])
print(".safetensors:  ", loaded[:4], "...", loaded[-1])
assert own == list(state)
assert sorted(loaded) == sorted(own) and loaded != own
assert loaded[0] == "11.num_batches_tracked"  # eight bytes an element, so before all of four
assert loaded[1:3] == ["0.bias", "0.weight"]
assert loaded.index("10.bias") < loaded.index("2.bias")
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
