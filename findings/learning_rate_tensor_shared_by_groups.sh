#!/usr/bin/env bash
# A learning rate that is a tensor is one tensor for all parameter groups: the schedule of one group sets all.
#
# Versions: torch 2.13.0, CPU, one process
# Expected: Two groups, LambdaLR with a factor for each: rates 0.1 and 0.05, whether the rate was given as 0.1 or as
#   torch.tensor(0.1).
# Seen: With a tensor both groups hold the same object, into which the schedule writes in place: 0.05 and 0.05. No
#   error.
# Source: torch/optim/optimizer.py, add_param_group (defaults are set, not copied); lr_scheduler.py fills tensors in
#   place.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import torch


def rates(rate):
    groups = [{"params": [torch.nn.Parameter(torch.ones(1))]} for _ in range(2)]
    optimizer = torch.optim.SGD(groups, lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda _: 1.0, lambda _: 0.5])
    optimizer.step()
    schedule.step()
    return [round(float(group["lr"]), 6) for group in optimizer.param_groups]


print("float:", rates(0.1), "tensor:", rates(torch.tensor(0.1)))
assert rates(0.1) == [0.1, 0.05]
assert rates(torch.tensor(0.1)) == [0.05, 0.05]
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
