#!/usr/bin/env bash
# torchinfo counts a tied weight once for each layer that has it; Lightning's summary of the same model does not.
#
# Versions: torch 2.13.0, torchinfo 1.8.0, lightning 2.6.6, CPU
# Expected: 40 parameters, as model.parameters() has: the output layer's weight is the embedding's.
# Seen: torchinfo says 80 in total and as trainable. It knows layers that are used twice, and not a parameter that two
#   layers share, so a language model with tied embeddings seems larger by vocabulary times width.
# Source: torchinfo/layer_info.py, LayerInfo.calculate_num_params; lightning/pytorch/utilities/model_summary.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 torchinfo==1.8.0 lightning==2.6.6
cat >"$folder/program.py" <<'PROGRAM'
import lightning
import torch
import torchinfo
from lightning.pytorch.utilities.model_summary import summarize


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 4)
        self.head = torch.nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(words))


model = Model()
words = torch.zeros(1, 3, dtype=torch.long)
seen = {
    "torchinfo": torchinfo.summary(model, input_data=words, verbose=0).total_params,
    "lightning": summarize(model).total_parameters,
    "parameters()": sum(parameter.numel() for parameter in model.parameters()),
}
print(seen)
assert seen == {"torchinfo": 80, "lightning": 40, "parameters()": 40}
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
