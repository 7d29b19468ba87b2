#!/usr/bin/env bash
# `collection["recall"].reset()` does nothing, if another metric of the collection has the same states.
#
# Versions: torch 2.13.0, torchmetrics 1.9.0, CPU
# Expected: The recall starts anew and the precision goes on: a collection behaves as its metrics do, one by one.
# Seen: Both metrics share their states ("compute groups", the default); the next update gives the recall the counts of
#   the precision again, with the batches before the reset. No warning. With compute_groups=False the reset holds, and so
#   it does in a collection whose metrics happen to need different states.
# Source: torchmetrics/collections.py, MetricCollection.update and _compute_groups_create_state_ref.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 torchmetrics==1.9.0
cat >"$folder/program.py" <<'PROGRAM'
import torch
from torchmetrics import MetricCollection, Precision, Recall


def updates(compute_groups: bool) -> dict[str, int]:
    metrics = MetricCollection(
        {"precision": Precision("multiclass", num_classes=3), "recall": Recall("multiclass", num_classes=3)},
        compute_groups=compute_groups,
    )
    for _ in range(2):
        metrics.update(torch.tensor([0, 1, 2]), torch.tensor([0, 1, 1]))
    metrics["recall"].reset()
    metrics.update(torch.tensor([0]), torch.tensor([0]))
    return {name: metric.update_count for name, metric in metrics.items()} | {
        "value of recall": round(float(metrics.compute()["recall"]), 4)
    }


print(updates(True), updates(False))
assert updates(True) == {"precision": 3, "recall": 3, "value of recall": 0.7143}
assert updates(False) == {"precision": 3, "recall": 1, "value of recall": 1.0}
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
