#!/usr/bin/env bash
# Keras on its torch backend: a Keras model is a torch.nn.Module, and its train() changes nothing, so a native loop
# trains without dropout and with BatchNormalization's initial statistics.
#
# Versions: keras 3.15.1, torch 2.13.0, CPU
# Expected: model.train() switches Dropout on and lets BatchNormalization update its statistics, and model.eval() undoes
#   both, as for every other module; `model.training` says True.
# Seen: `training` is True after train(), and a direct call of the model still drops nothing and updates no statistics,
#   also inside of another torch module. Keras takes the argument of the call alone: model(x, training=True) does both.
#   An epoch of such a loop ends with a moving mean of 0 and a moving variance of 1, and validates with these.
# Source: keras/src/layers/layer.py, Layer.__call__ (the call context's training), and keras/src/backend/torch/layer.py,
#   which overrides forward and neither train nor eval. Keras' guide to torch loops passes training=True without a reason.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 keras==3.15.1
cat >"$folder/program.py" <<'PROGRAM'
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import torch

dropout = keras.layers.Dropout(0.5)
norm = keras.layers.BatchNormalization()
model = keras.Sequential([keras.Input((100,)), dropout, norm])
batch = torch.ones(8, 100) * 3


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model

    def forward(self, x):
        return self.inner(x)


def changed(call):
    before = norm.moving_mean.numpy().copy()
    call()
    return bool((norm.moving_mean.numpy() != before).any())


assert isinstance(model, torch.nn.Module)
outer = Outer().train()
assert model.training and dropout.training and norm.training
dropped = int((dropout(batch) == 0).sum())
moved = changed(lambda: outer(batch))
print("after train(): dropped", dropped, "statistics changed", moved)
assert dropped == 0 and not moved
dropped = int((dropout(batch, training=True) == 0).sum())
moved = changed(lambda: model(batch, training=True))
print("with training=True: dropped", dropped, "statistics changed", moved)
assert dropped > 0 and moved
# Both layers, as torch has them.
torch_norm = torch.nn.BatchNorm1d(100).train()
torch_norm(torch.randn(8, 100) + 3)
assert torch_norm.running_mean.abs().sum() > 0
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
