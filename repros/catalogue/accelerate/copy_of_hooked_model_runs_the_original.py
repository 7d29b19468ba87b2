# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0013"
# title = "A deep copy of a hooked model computes with the original's weights"
# kind = "bug"
# upstream.reports = ["https://github.com/huggingface/accelerate/issues/1835"]
# upstream.fixed_by = ["https://github.com/huggingface/accelerate/pull/1971"]
# packages = ["accelerate"]
# affected = ["accelerate<0.24"]
# exists = ["accelerate>=0.8"]
# exists_source = "https://github.com/huggingface/accelerate/pull/345"
# home = "2023-05"
# silent = true
# finds = ["copy_runs_original"]
#
# [tool.repro.variants.failing]
# about = "deepcopy a model that has a hook, then change the copy's weight"
# raises = "AssertionError"
# match = "expected the copy's output 10.0, got 2.0"
#
# [tool.repro.variants.fixed]
# about = "take the hooks off, copy, and put hooks on both"
# source = "https://github.com/huggingface/accelerate/pull/1971"
#
# [tool.repro.variants.loaded_copy]
# outcome = "fails"
# about = "the new weight is loaded into the copy with load_state_dict"
# ///
"""An EMA or teacher copied from a dispatched model is the student under another name.

Symptom: the copy has parameters of its own, which train or average as they should, and its output is the original's.
Silent.

Cause: `accelerate.hooks.add_hook_to_module` replaced `module.forward` with a closure over the module. A deep copy
copies that attribute, but a function is copied by reference: the copy's `forward` runs the original module.

Fix: accelerate 0.24 binds the new forward to the module it is called on. Before: copy first, dispatch afterwards.
"""

import copy
import sys

import torch
from accelerate.hooks import ModelHook, add_hook_to_module, remove_hook_from_module
from torch import nn


def hooked_original():
    original = nn.Linear(1, 1, bias=False)
    nn.init.constant_(original.weight, 2.0)
    return add_hook_to_module(original, ModelHook())


def failing():
    twin = copy.deepcopy(hooked_original())
    nn.init.constant_(twin.weight, 10.0)
    return twin


def fixed():
    original = remove_hook_from_module(hooked_original())
    twin = copy.deepcopy(original)
    add_hook_to_module(original, ModelHook())
    add_hook_to_module(twin, ModelHook())
    nn.init.constant_(twin.weight, 10.0)
    return twin


def loaded_copy():
    twin = copy.deepcopy(hooked_original())
    twin.load_state_dict({"weight": torch.full((1, 1), 10.0)})
    return twin


VARIANTS = {v.__name__: v for v in (failing, fixed, loaded_copy)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    twin = VARIANTS[variant]()
    got = twin(torch.ones(1, 1)).item()  # its weight times 1
    assert got == 10.0, f"expected the copy's output 10.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
