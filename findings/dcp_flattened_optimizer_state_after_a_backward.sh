#!/usr/bin/env bash
# A flattened optimizer state that is loaded after a backward leaves a new optimizer without moments, and says nothing.
#
# Versions: torch 2.13.0, CPU, one process
# Expected: set_optimizer_state_dict restores the moments, or raises: the groups and their options are restored.
# Seen: with `flatten_optimizer_state_dict=True` into an optimizer without a state, every state is an empty dict if a
#   parameter has a gradient at the time of the call, and AdamW begins anew at the next step. After zero_grad() the same
#   call restores all.
# Source: torch/distributed/checkpoint/state_dict.py, _init_optim_state returns early if it finds a gradient, and then the
#   flat keys meet no state to fill.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

options = StateDictOptions(flatten_optimizer_state_dict=True)


def made():
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def backward(model):
    model(torch.ones(1, 2)).sum().backward()


model, optimizer = made()
backward(model)
optimizer.step()
saved = get_optimizer_state_dict(model, optimizer, options=options)
seen = {}
for has_gradients in (False, True):
    model, optimizer = made()
    if has_gradients:
        backward(model)
    set_optimizer_state_dict(model, optimizer, saved, options=options)
    seen[has_gradients] = [sorted(state) for state in optimizer.state.values()]
moments = ["exp_avg", "exp_avg_sq", "step"]
assert seen == {False: [moments, moments], True: [[], []]}, seen
print("loaded without gradients:", seen[False][0], "with:", seen[True][0])
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
