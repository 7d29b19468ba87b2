#!/usr/bin/env bash
# PEFT: two OFT adapters are merged in the other order than the forward applies them.
#
# Versions: peft 0.21.2, transformers 5.23.0, torch 2.13.0
# Expected: merge_adapter(['a', 'b']) of a model whose active adapters are ['a', 'b'] leaves the outputs as they were.
# Seen: Rotations do not commute: the outputs change by about 0.1. Merged as ['b', 'a'] they stay. One adapter merges
#   rightly.
# Source: peft/tuners/oft/layer.py, merge and forward.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 transformers==5.23.0 peft==0.21.2
cat >"$folder/program.py" <<'PROGRAM'
import torch
from peft import OFTConfig, get_peft_model


def change(active, merged):
    torch.manual_seed(0)
    config = OFTConfig(r=0, oft_block_size=4, target_modules=["0"], init_weights=False)
    model = get_peft_model(torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False)), config, adapter_name="a")
    model.add_adapter("b", config)
    model.base_model.set_adapter(active)
    model.eval()
    rows = torch.randn(3, 8)
    before = model(rows)
    model.merge_adapter(merged)
    return (before - model(rows)).abs().max().item()


one, same, other = change(["a"], ["a"]), change(["a", "b"], ["a", "b"]), change(["a", "b"], ["b", "a"])
print("one adapter:", one, "same order:", same, "other order:", other)
assert one < 1e-5 and other < 1e-5
assert same > 1e-2
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
