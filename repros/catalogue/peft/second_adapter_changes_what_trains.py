# /// script
# dependencies = ["torch>=2.0", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0158"
# title = "Loading a second adapter freezes or unfreezes the first one instead"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/3580",
#     "https://github.com/huggingface/peft/issues/3487",
# ]
# upstream.fixed_by = ["https://github.com/huggingface/peft/pull/3495"]
# upstream.related = [
#     "https://github.com/huggingface/peft/issues/2759",
#     "https://github.com/huggingface/peft/pull/2765",
#     "https://github.com/huggingface/peft/issues/3447",
# ]
# packages = ["peft"]
# affected = ["peft<0.21"]
# home = "2025-11"
# silent = true
# finds = ["adapter_switched"]
#
# [tool.repro.variants.failing]
# about = "a frozen adapter, then load_adapter with is_trainable=True"
# raises = "AssertionError"
# match = "expected 2 trained matrices of the adapter other, got 0"
#
# [tool.repro.variants.fixed]
# about = "set_adapter with the loaded adapter's name"
# source = "https://github.com/huggingface/peft/issues/3580"
#
# [tool.repro.variants.frozen_reference]
# outcome = "fails"
# about = "a trainable adapter, then load_adapter of a frozen reference: nothing is trained any more"
# raises = "AssertionError"
# match = "expected 2 trained matrices of the adapter default, got 0"
# affected = ["peft>=0.18,<0.21"]
#
# [tool.repro.variants.reference_first]
# outcome = "passes"
# about = "the same, and set_adapter with the first adapter's name"
# ///
"""The optimizer trains another adapter than the one that was loaded to be trained, or none.

Symptom: after `load_adapter(..., is_trainable=True)` the frozen adapter of before requires gradients and the new one does
not. The other way round, from 0.18 on, a reference adapter that is loaded frozen freezes the one in training. Silent.

Cause: `inject_adapter` ended in `set_adapter(self.active_adapters)`, and the active adapter is still the first one: it
was unfrozen up to PEFT 0.17, and took the new adapter's `inference_mode` from 0.18 on. `add_adapter` did the same.

Fix: PEFT 0.21 sets the new adapter's parameters alone. Before: `set_adapter` after `load_adapter`. The end of a
`disable_adapter()` block still unfreezes a frozen active adapter.
"""

import sys
import tempfile

from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.layer(x)


def failing(folder):
    model = PeftModel.from_pretrained(Model(), folder)
    model.load_adapter(folder, adapter_name="other", is_trainable=True)
    return model, "other"


def fixed(folder):
    model = PeftModel.from_pretrained(Model(), folder)
    model.load_adapter(folder, adapter_name="other", is_trainable=True)
    model.set_adapter("other")
    return model, "other"


def frozen_reference(folder):
    model = PeftModel.from_pretrained(Model(), folder, is_trainable=True)
    model.load_adapter(folder, adapter_name="reference")
    return model, "default"


def reference_first(folder):
    model = PeftModel.from_pretrained(Model(), folder, is_trainable=True)
    model.load_adapter(folder, adapter_name="reference")
    model.set_adapter("default")
    return model, "default"


VARIANTS = {v.__name__: v for v in (failing, fixed, frozen_reference, reference_first)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        get_peft_model(Model(), LoraConfig(r=1, target_modules=["layer"])).save_pretrained(folder)
        model, adapter = VARIANTS[variant](folder)
    # Its lora_A and lora_B.
    got = sum(f".{adapter}." in name and parameter.requires_grad for name, parameter in model.named_parameters())
    assert got == 2, f"expected 2 trained matrices of the adapter {adapter}, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
