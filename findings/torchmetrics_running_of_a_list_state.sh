#!/usr/bin/env bash
# torchmetrics: Running of a metric whose state is a list keeps nothing.
#
# Versions: torchmetrics 1.9.0, torch 2.13.0
# Expected: Running(CatMetric(), window=3) after two updates returns both values, as Running(SumMetric()) sums them;
#   or the metric is refused.
# Seen: An empty list, without an error or a warning.
# Source: torchmetrics/wrappers/running.py, update (keeps a reference to the list), and metric.py, reset (clears the
#   list in place).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 torchmetrics==1.9.0
cat >"$folder/program.py" <<'PROGRAM'
import torch
from torchmetrics import CatMetric, SumMetric
from torchmetrics.wrappers import Running

values, total = Running(CatMetric(), window=3), Running(SumMetric(), window=3)
for value in (1.0, 3.0):
    values.update(torch.tensor([value]))
    total.update(torch.tensor([value]))
print("values:", values.compute(), "sum:", total.compute())
assert total.compute().item() == 4.0
assert len(values.compute()) == 0
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
