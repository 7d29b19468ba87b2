#!/usr/bin/env bash
# torch.distributed.checkpoint.load into a new optimizer restores its learning rate and none of its moments.
#
# Versions: torch 2.13.0, CPU, one process
# Expected: An Adam that was saved after a step and loaded into a new Adam, as a Stateful or as a state dict, has its
#   moments; or the load says what is missing.
# Seen: Only keys of the *target's* state dict are read, and a new optimizer has no state. The rate is restored, 0
#   states are, no error: training goes on with empty moments.
# Source: torch/distributed/checkpoint/default_planner.py and state_dict_loader.py (the keys to read come from the
#   target).
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
import torch.distributed.checkpoint as dcp

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
new = torch.optim.Adam(model.parameters(), lr=0.1)
with tempfile.TemporaryDirectory() as folder:
    dcp.save({"optimizer": optimizer}, checkpoint_id=folder)
    dcp.load({"optimizer": new}, checkpoint_id=folder)
print("rate", new.param_groups[0]["lr"], "states", len(new.state), "of", len(optimizer.state))
assert new.param_groups[0]["lr"] == 0.5
assert len(optimizer.state) == 2 and len(new.state) == 0
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
