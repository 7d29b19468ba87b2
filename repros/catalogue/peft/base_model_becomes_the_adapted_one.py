# /// script
# dependencies = ["torch>=2.0", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0152"
# title = "The base model that get_peft_model was given computes with the adapter, too"
# kind = "by design"
# documented = "https://huggingface.co/docs/peft/tutorial/peft_model_config"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/940",
#     "https://github.com/huggingface/peft/issues/2295",
#     "https://github.com/huggingface/peft/pull/3470",
# ]
# upstream.related = ["https://github.com/huggingface/peft/pull/2313"]
# packages = ["peft"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "the base as a reference beside the adapted model"
# raises = "AssertionError"
# match = "expected the base model's output 2.0, got 5.0"
#
# [tool.repro.variants.fixed]
# about = "a deep copy made before"
# source = "https://github.com/huggingface/peft/issues/940"
#
# [tool.repro.variants.base_asked_back]
# outcome = "fails"
# about = "model.get_base_model(), which is that object"
#
# [tool.repro.variants.adapter_disabled]
# outcome = "passes"
# about = "the adapted model with its adapter disabled"
# source = "https://github.com/huggingface/peft/pull/3470"
#
# [tool.repro.variants.unloaded]
# outcome = "passes"
# about = "model.unload(), which ends the adapted model"
# ///
"""A reference, teacher or baseline that is the base model follows the training of the adapter.

Symptom: both models give the same outputs, a KL penalty stays at zero, and before and after look alike. Silent.

Cause: `get_peft_model` and `PeftModel.from_pretrained` put the adapter into the base model's own layers. The variable
`base` and the adapted model have the same modules.

Fix: load or copy the base once more, or compute the reference under `with model.disable_adapter()`.

Watch: no check sees it: two models that share their modules are usual, and PEFT's own `generate` calls the base model.
"""

import contextlib
import copy
import sys

import torch
from peft import LoraConfig, get_peft_model
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.layer.weight, 2.0)

    def forward(self, x):
        return self.layer(x)


def adapt(base):
    model = get_peft_model(base, LoraConfig(r=1, lora_alpha=1, target_modules=["layer"]))
    adapted = model.base_model.model.layer
    nn.init.constant_(adapted.lora_A["default"].weight, 1.0)
    nn.init.constant_(adapted.lora_B["default"].weight, 3.0)
    return model


def failing(base):
    adapt(base)
    return base, contextlib.nullcontext()


def fixed(base):
    reference = copy.deepcopy(base)
    adapt(base)
    return reference, contextlib.nullcontext()


def base_asked_back(base):
    return adapt(base).get_base_model(), contextlib.nullcontext()


def adapter_disabled(base):
    model = adapt(base)
    return model, model.disable_adapter()


def unloaded(base):
    return adapt(base).unload(), contextlib.nullcontext()


VARIANTS = {v.__name__: v for v in (failing, fixed, base_asked_back, adapter_disabled, unloaded)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    reference, context = VARIANTS[variant](Model())
    with context:
        got = reference(torch.ones(1, 1)).item()  # 2, and 2 + 3 * 1 with the adapter
    assert got == 2.0, f"expected the base model's output 2.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
