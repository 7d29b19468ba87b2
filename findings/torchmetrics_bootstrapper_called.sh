#!/usr/bin/env bash
# torchmetrics: a BootStrapper that is called, not updated, holds the last batch alone.
#
# Versions: torchmetrics 1.9.0, torch 2.13.0
# Expected: metric(batch) accumulates as metric.update(batch) does, and returns the batch's value beside it: that is
#   what every metric of the library does.
# Seen: After batches of 1.0 and 3.0 the called wrapper's mean is 3.0 with a deviation of 0; the updated one's lies
#   between.
# Source: torchmetrics/wrappers/bootstrapping.py and abstract.py (forward of the wrapper resets its copies).
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
from torchmetrics.wrappers import BootStrapper

torch.manual_seed(0)
called, updated, plain = BootStrapper(MeanMetric(), 20), BootStrapper(MeanMetric(), 20), MeanMetric()
for value in (1.0, 3.0):
    batch = torch.full((8,), value)
    called(batch)
    updated.update(batch)
    plain(batch)
called, updated, plain = called.compute(), updated.compute(), plain.compute()
print("called:", called, "updated:", updated, "plain metric, called:", plain)
assert plain.item() == 2.0
assert called["mean"].item() == 3.0 and called["std"].item() == 0.0
assert 1.5 < updated["mean"].item() < 2.5
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
