#!/usr/bin/env bash
# torch.distributed.checkpoint.load leaves a module alone that lies one level deeper in the state dict.
#
# Versions: torch 2.13.0, CPU, one process
# Expected: {'app': {'model': model}} is saved and loaded like {'model': model}; or the nested module is refused.
# Seen: At the top level a module is a Stateful and is loaded in place. One level deeper it is pickled as a whole, and
#   the load puts the unpickled module into the dict: the one that the optimizer trains stays as it was.
# Source: torch/distributed/checkpoint/default_planner.py, load_bytes; state_dict_loader.py looks for Stateful among
#   the top level's values alone.
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


def restored(wrap):
    saved, model = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        dcp.save(wrap(saved), checkpoint_id=folder)
        dcp.load(wrap(model), checkpoint_id=folder)
    return torch.equal(saved.weight, model.weight)


top, deeper = restored(lambda model: {"model": model}), restored(lambda model: {"app": {"model": model}})
print("restored at the top:", top, "one level deeper:", deeper)
assert top and not deeper
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
