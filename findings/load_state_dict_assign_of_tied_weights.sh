#!/usr/bin/env bash
# load_state_dict(assign=True) of a tied model leaves two parameters over one memory, which the optimizer steps twice.
#
# Versions: torch 2.13.0, CPU, one process
# Expected: A state dict of the same tied model, assigned back, keeps the tie (one parameter), or two parameters have
#   memory of their own.
# Seen: Each name gets a new Parameter over the same storage: the tie is gone for named_parameters(), and weight decay
#   acts twice, 0.9801 for 0.99.
# Source: torch/nn/modules/module.py, _load_from_state_dict (assign wraps each tensor in a new Parameter).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import torch


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
        self.head.weight = self.embed.weight
        torch.nn.init.ones_(self.embed.weight)


def decayed(assign):
    model = Tied()
    model.load_state_dict(model.state_dict(), assign=assign)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    return len(list(model.parameters())), round(model.embed.weight.item(), 4), round(model.head.weight.item(), 4)


print("copied:", decayed(assign=False), "assigned:", decayed(assign=True))
assert decayed(assign=False) == (1, 0.99, 0.99)
assert decayed(assign=True) == (2, 0.9801, 0.9801)
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
