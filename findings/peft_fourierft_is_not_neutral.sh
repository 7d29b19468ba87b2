#!/usr/bin/env bash
# PEFT: a new FourierFT adapter changes the model's outputs by ten times their size.
#
# Versions: peft 0.21.2, transformers 5.23.0, torch 2.13.0
# Expected: A new adapter with default settings leaves the model as it is, as LoRA, IA3, OFT and VeRA do.
# Seen: The spectrum is drawn from a normal distribution and scaled by 150 by default; init_weights=True is what makes
#   it neutral (the reverse of LoRA, where True is the default).
# Source: peft/tuners/fourierft/config.py (init_weights=False, scaling=150.0) and layer.py.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 transformers==5.23.0 peft==0.21.2
cat >"$folder/program.py" <<'PROGRAM'
import torch
from peft import FourierFTConfig, LoraConfig, get_peft_model


def change(config):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 32))
    rows = torch.randn(3, 32)
    before = model(rows).detach()
    adapted = get_peft_model(model, config).eval()
    return ((adapted(rows) - before).abs().max() / before.abs().max()).item()


fourier = change(FourierFTConfig(n_frequency=100, target_modules=["0"]))
neutral = change(FourierFTConfig(n_frequency=100, target_modules=["0"], init_weights=True))
lora = change(LoraConfig(target_modules=["0"]))
print("change relative to the output: FourierFT", fourier, "with init_weights=True", neutral, "LoRA", lora)
assert fourier > 3
assert neutral < 1e-6 and lora < 1e-6
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
