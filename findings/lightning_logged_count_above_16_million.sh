#!/usr/bin/env bash
# Lightning rounds an integer that is logged: 16,777,217 tokens are 16,777,216 in the logger and in callback_metrics.
#
# Versions: torch 2.13.0, lightning 2.6.6, CPU
# Expected: `self.log("tokens", count)` keeps an int, or an int64 tensor, exact: a checkpoint's file name or an
#   early stop by the number of tokens is right.
# Seen: It becomes a float32 tensor before any reduction, also with on_step=True alone. Above 2**24 the count is even,
#   above 2**31 it moves in steps of 256, and a counter that grows by less than that stands still.
# Source: lightning/pytorch/core/module.py, LightningModule.__to_tensor; trainer/connectors/logger_connector/result.py.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 lightning==2.6.6
cat >"$folder/program.py" <<'PROGRAM'
import logging

import lightning
import torch

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        self.log("int", 16_777_217, on_step=True, on_epoch=False)
        self.log("int64", torch.tensor(16_777_217), on_step=True, on_epoch=False)
        return self.layer(batch[0]).sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = lightning.Trainer(
    max_steps=1,
    logger=False,
    accelerator="cpu",
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(2, 1))))
seen = {name: (str(value.dtype), int(value)) for name, value in trainer.callback_metrics.items()}
print(seen)
assert seen == {"int": ("torch.float32", 16_777_216), "int64": ("torch.float32", 16_777_216)}
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
