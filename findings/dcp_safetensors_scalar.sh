#!/usr/bin/env bash
# DCP to safetensors with consolidation writes 0 for tensors without dimensions.
#
# Versions: torch 2.13.0, safetensors 0.8.0, CPU, one process
# Expected: The consolidated file holds what was saved: logit_scale 3.0.
# Seen: The sharded file has 3.0, the consolidated one 0.0; tensors with dimensions are right.
# Source: torch/distributed/checkpoint/_consolidate_hf_safetensors.py (no bytes are copied for an empty shape).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 safetensors==0.8.0
cat >"$folder/program.py" <<'PROGRAM'
import pathlib
import tempfile

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

with tempfile.TemporaryDirectory() as folder:
    writer = HuggingFaceStorageWriter(path=folder, save_distributed=True, enable_consolidation=True)
    dcp.save({"logit_scale": torch.tensor(3.0), "bias": torch.tensor([2.0])}, storage_writer=writer)
    (whole,) = pathlib.Path(folder).glob("*.safetensors")
    (shard,) = pathlib.Path(folder, "sharded").glob("*.safetensors")
    whole, shard = load_file(whole), load_file(shard)
print("consolidated:", whole, "shard:", shard)
assert shard["logit_scale"].item() == 3.0
assert whole["logit_scale"].item() == 0.0
assert whole["bias"].item() == 2.0
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
