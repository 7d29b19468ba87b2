#!/usr/bin/env bash
# TensorBoard's writer shows a bfloat16 loss of 100,000 as infinity, and one of 1e-9 as 0.
#
# Versions: torch 2.13.0, tensorboard 2.21.0, CPU
# Expected: `add_scalar` writes the tensor's value (99,840 in bfloat16), since the file has float32.
# Seen: The value goes through float16 on its way, although a bfloat16 number always fits in float32: above 65,504 it is
#   infinity, below 6e-8 it is 0. A gradient norm or a perplexity of a bfloat16 run looks diverged, and is not.
# Source: torch/utils/tensorboard/_convert_np.py, _prepare_pytorch.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 tensorboard==2.21.0
cat >"$folder/program.py" <<'PROGRAM'
import tempfile

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

norms = {"large": 1e5, "small": 1e-9}
with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for name, value in norms.items():
            writer.add_scalar(name, torch.tensor(value, dtype=torch.bfloat16))
            writer.add_scalar(f"{name}, by item()", torch.tensor(value, dtype=torch.bfloat16).item())
    events = EventAccumulator(folder).Reload()
    seen = {name: events.Scalars(name)[0].value for name in events.Tags()["scalars"]}
print(seen)
assert seen["large"] == float("inf")
assert seen["large, by item()"] == 99840.0
assert seen["small"] == 0.0
assert seen["small, by item()"] > 0.0
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
