#!/usr/bin/env bash
# accelerate's adjust_scheduler neither shortens a schedule under gradient accumulation nor leaves it alone.
#
# Versions: accelerate 1.15.0, torch 2.13.0, CPU
# Expected: with GradientAccumulationPlugin(num_steps=4, adjust_scheduler=True), the default, a prepared schedule of 16
#   steps over 16 batches ends with the epoch, and with False it is as long as its author wrote it: two answers.
# Seen: both are at a quarter of the schedule after the epoch. The schedule steps only where gradients are synchronised,
#   once in four batches, whatever the option says.
# Source: huggingface/accelerate PR 1187 (which introduced it) and the open PR 4262.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet accelerate==1.15.0 torch==2.13.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import GradientAccumulationPlugin


def rate_after_an_epoch(adjust):
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    plugin = GradientAccumulationPlugin(num_steps=4, adjust_scheduler=adjust)
    accelerator = Accelerator(cpu=True, gradient_accumulation_plugin=plugin)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=16)
    loader = torch.utils.data.DataLoader(torch.ones(16, 1), batch_size=1)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).sum())
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    return optimizer.param_groups[0]["lr"]


seen = {adjust: rate_after_an_epoch(adjust) for adjust in (True, False)}
assert all(abs(rate - 0.75) < 1e-6 for rate in seen.values()), seen
print("the rate after the epoch:", seen)
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
