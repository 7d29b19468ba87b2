#!/usr/bin/env bash
# accelerate: save_state keeps the first of several weights that were split from one tensor, and says that this should be OK.
#
# Versions: accelerate 1.15.0, safetensors 0.8.0, torch 2.13.0
# Expected: q, k and v made by chunk() of one tensor share memory without overlap. All three are saved, or the save is
#   refused.
# Seen: model.safetensors holds q alone. A message says that shared tensors were removed and that this should be OK;
#   load_state then leaves k and v as they are.
# Source: accelerate/utils/other.py, clean_state_dict_for_safetensors (tensors are grouped by storage, not by the
#   memory they cover).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 accelerate==1.15.0 safetensors==0.8.0
cat >"$folder/program.py" <<'PROGRAM'
import tempfile

import torch
from accelerate import Accelerator
from safetensors.torch import load_file


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Parameter(part) for part in torch.randn(6, 2).chunk(3))


accelerator = Accelerator(cpu=True)
model = accelerator.prepare(Attention())
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    saved = sorted(load_file(folder + "/model.safetensors"))
print("parameters:", sorted(model.state_dict()), "saved:", saved)
assert sorted(model.state_dict()) == ["k", "q", "v"]
assert saved == ["q"], saved
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
