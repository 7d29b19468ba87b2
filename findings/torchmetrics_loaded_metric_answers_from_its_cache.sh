#!/usr/bin/env bash
# torchmetrics: after load_state_dict, compute() returns what it had computed before the load.
#
# Versions: torchmetrics 1.9.0, torch 2.13.0
# Expected: A load replaces the state, so compute() computes anew: 5.0.
# Seen: compute() caches its result until the next update, and a load does not clear it: 1.0, with the loaded state
#   behind it.
# Source: torchmetrics/metric.py, _wrap_compute and _load_from_state_dict.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 torchmetrics==1.9.0
cat >"$folder/program.py" <<'PROGRAM'
import torch
from torchmetrics import MeanMetric


def metric(value):
    made = MeanMetric()
    made.persistent(mode=True)
    made.update(torch.tensor(value))
    return made


saved, used, fresh = metric(5.0), metric(1.0), metric(1.0)
used.compute()  # a validation before the resume
for target in (used, fresh):
    target.load_state_dict(saved.state_dict())
print("computed before the load:", used.compute(), "not computed before:", fresh.compute())
assert used.compute().item() == 1.0
assert fresh.compute().item() == 5.0
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
