# /// script
# dependencies = ["torch>=2.4", "bitsandbytes>=0.47"]
#
# [tool.repro]
# id = "RPR-0037"
# title = "A 4-bit layer cannot load the state dict that it wrote"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/1946",
#     "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/438",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19271",
# ]
# upstream.unreleased_fix = ["https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1958"]
# upstream.related = [
#     "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/864",
#     "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/753",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/19886",
# ]
# packages = ["bitsandbytes"]
# exists = ["bitsandbytes>=0.39"]
# exists_source = "https://github.com/bitsandbytes-foundation/bitsandbytes/blob/0.45.1/CHANGELOG.md"
# home = "2026-07"
# devices = ["cpu", "cuda"]
#
# [tool.repro.variants.failing]
# about = "load a quantised Linear4bit's state dict into another one"
# raises = "RuntimeError"
# match = 'Unexpected key(s) in state_dict: "weight.absmax", "weight.quant_map"'
#
# [tool.repro.variants.fixed]
# about = "make the weight from the state dict's parts with Params4bit.from_prequantized"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/19886"
#
# [tool.repro.variants.moved_first]
# outcome = "fails"
# about = "move the layer to its device before loading, as 8-bit layers require"
# claim = "a quantised state dict can be loaded once the layer has been moved and is quantised itself"
# source = "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/159"
#
# [tool.repro.variants.not_strict]
# outcome = "fails"
# about = "move the layer, then load_state_dict(strict=False): nothing is raised, the output is wrong"
# raises = "AssertionError"
# match = "expected outputs [64.0, -192.0] of the saved weights 1 and -3, got [128.0, -128.0]"
# claim = "strict=False skips the keys that the layer does not know"
# source = "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/1946"
# ///
"""A 4-bit model is saved without a complaint and cannot be read back with load_state_dict.

Symptom: `RuntimeError: Error(s) in loading state_dict for Linear4bit: Unexpected key(s) in state_dict: "weight.absmax",
"weight.quant_map", ...`, with a size mismatch of the weight where the layer was not moved yet.

Cause: `Linear4bit._save_to_state_dict` adds the parts of the weight's `quant_state` to what it saves, but there is no
`_load_from_state_dict` to read them back: bitsandbytes#753 added one, and #864 removed it. With `strict=False` the
moved layer takes the packed numbers and keeps the scales that it was quantised with: no error, and a wrong output.

Fix: make the weight with `Params4bit.from_prequantized`, as transformers and Lightning (from 2.3) do for whole models.
"""

import sys

import torch
from bitsandbytes.nn import Linear4bit, Params4bit
from torch import nn


def new_layer(values=(2.0, 2.0)):
    layer = Linear4bit(64, 64, bias=False, compress_statistics=False)
    for rows, value in zip(layer.weight.data.split(32), values):
        nn.init.constant_(rows, value)
    return layer


def failing(state, device):
    layer = new_layer()
    layer.load_state_dict(state)
    return layer.to(device)


def fixed(state, device):
    layer = new_layer()
    layer.weight = Params4bit.from_prequantized(state.pop("weight"), state, device=device)
    return layer


def moved_first(state, device):
    layer = new_layer().to(device)
    layer.load_state_dict(state)
    return layer


def not_strict(state, device):
    layer = new_layer().to(device)
    layer.load_state_dict(state, strict=False)
    return layer


VARIANTS = {v.__name__: v for v in (failing, fixed, moved_first, not_strict)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    saved = new_layer((1.0, -3.0)).to(accelerator).state_dict()
    layer = VARIANTS[variant](saved, accelerator)
    # Each row of 64 weights is a block with its own scale: 64 inputs of 1 times 1 in the first, times -3 in the last.
    got = layer(torch.ones(1, 64, device=accelerator))[0, [0, -1]].tolist()
    assert got == [64.0, -192.0], f"expected outputs [64.0, -192.0] of the saved weights 1 and -3, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
