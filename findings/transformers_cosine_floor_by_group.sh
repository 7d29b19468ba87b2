#!/usr/bin/env bash
# transformers: the floor min_lr of the cosine schedule holds for the group with the default rate alone.
#
# Versions: transformers 5.23.0, torch 2.13.0
# Expected: Two groups with 1e-3 and 2e-5 and min_lr=1e-5: no group ends below 1e-5.
# Seen: min_lr is turned into one factor, by the optimizer's default rate, and multiplied with each group's: the
#   second group ends at 2e-7.
# Source: transformers/optimization.py, get_cosine_with_min_lr_schedule_with_warmup (min_lr_rate = min_lr /
#   optimizer.defaults['lr']).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 transformers==5.23.0
cat >"$folder/program.py" <<'PROGRAM'
import torch
from transformers import get_cosine_with_min_lr_schedule_with_warmup

weights = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
groups = [{"params": [weight], "lr": rate} for weight, rate in zip(weights, (1e-3, 2e-5))]
optimizer = torch.optim.SGD(groups, lr=1e-3)
schedule = get_cosine_with_min_lr_schedule_with_warmup(optimizer, 0, 10, min_lr=1e-5)
for _ in range(10):
    optimizer.step()
    schedule.step()
first, second = (group["lr"] for group in optimizer.param_groups)
print("rates at the end:", first, second)
assert abs(first - 1e-5) < 1e-9
assert abs(second - 2e-7) < 1e-9
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
