# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0148"
# title = "load_state before prepare loads nothing, and says that it has loaded"
# kind = "misuse"
# documented = "https://huggingface.co/docs/accelerate/usage_guides/checkpoint"
# upstream.reports = [
#     "https://github.com/X-GenGroup/Flow-Factory/issues/172",
#     "https://github.com/X-GenGroup/Flow-Factory/pull/174",
# ]
# upstream.related = ["https://github.com/huggingface/accelerate/issues/555"]
# packages = ["accelerate"]
# home = "current"
# silent = true
# finds = ["state_loaded_before_prepare"]
#
# [tool.repro.variants.failing]
# about = "load_state, then prepare"
# raises = "AssertionError"
# match = "expected the weight 5.0, got 0.0"
#
# [tool.repro.variants.fixed]
# about = "prepare, then load_state"
# source = "https://github.com/X-GenGroup/Flow-Factory/pull/174"
#
# [tool.repro.variants.loader_prepared]
# outcome = "fails"
# about = "load_state when the loader is prepared and the model is not yet"
#
# [tool.repro.variants.strict]
# outcome = "fails"
# about = "load_state(folder, strict=True), which is handed to each model that was prepared: none"
# ///
"""A run that goes on from a checkpoint calls `load_state` while it sets up, before its objects are prepared.

Symptom: training starts anew from the initial weights. The log says that all states were loaded. Silent.

Cause: `load_state` fills the models, optimizers and schedulers that `prepare` has registered with this accelerator. A
model that is prepared later is in no list, so that nothing is read but the random states.

Fix: prepare everything, then call `load_state`.
"""

import sys
import tempfile

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader


def new_model():
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    return model


def failing(accelerator, folder):
    model = new_model()
    accelerator.load_state(folder)
    return accelerator.prepare(model)


def fixed(accelerator, folder):
    model = accelerator.prepare(new_model())
    accelerator.load_state(folder)
    return model


def loader_prepared(accelerator, folder):
    accelerator.prepare(DataLoader(torch.ones(2, 1)))
    accelerator.load_state(folder)
    return accelerator.prepare(new_model())


def strict(accelerator, folder):
    accelerator.load_state(folder, strict=True)
    return accelerator.prepare(new_model())


VARIANTS = {v.__name__: v for v in (failing, fixed, loader_prepared, strict)}


def train(variant, accelerator):
    cpu = accelerator == "cpu"
    accelerator = Accelerator(cpu=cpu)
    model = accelerator.prepare(new_model())
    nn.init.constant_(accelerator.unwrap_model(model).weight, 5.0)
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        accelerator = Accelerator(cpu=cpu)
        got = accelerator.unwrap_model(VARIANTS[variant](accelerator, folder)).weight.item()
    assert got == 5.0, f"expected the weight 5.0, got {got}"


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    train(variant, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
