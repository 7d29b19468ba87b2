# /// script
# dependencies = ["torch>=2.0", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0162"
# title = "PeftModel.from_pretrained on a model that has an adapter loads no weights"
# kind = "misuse"
# documented = "https://github.com/huggingface/peft/issues/2115"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/2115",
#     "https://github.com/huggingface/lerobot/issues/3459",
#     "https://github.com/huggingface/peft/issues/2270",
# ]
# upstream.related = ["https://github.com/huggingface/peft/pull/2118"]
# packages = ["peft"]
# home = "2024-03"
# silent = true
# finds = ["adapter_not_loaded"]
#
# [tool.repro.variants.failing]
# about = "get_peft_model, then PeftModel.from_pretrained on what it returned"
# raises = "AssertionError"
# match = "expected the loaded lora_B 3.0, got 0.0"
#
# [tool.repro.variants.fixed]
# about = "PeftModel.from_pretrained on the base model"
# source = "https://github.com/huggingface/peft/issues/2115"
#
# [tool.repro.variants.wrapped_again]
# outcome = "fails"
# about = "the other way round, as a resumed training that wraps the loaded model: it begins with a new adapter"
# finds = ["adapter_replaced"]
#
# [tool.repro.variants.load_adapter]
# outcome = "passes"
# about = "model.load_adapter on the adapted model"
# ///
"""A trained adapter is loaded into a model that has been prepared for training, and the model answers like the base.

Symptom: the outputs are those of the base model, or a resumed training begins at its first loss. Silent up to PEFT 0.13.
Later ones warn: "Found missing adapter keys while loading the checkpoint".

Cause: `PeftModel.from_pretrained` wraps the `PeftModel` once more. The names of its layers then begin with
`base_model.model.base_model.model`, and those in the file do not; what does not fit is left out. The other way round,
`get_peft_model` initialises an adapter of the same name anew.

Fix: `PeftModel.from_pretrained` on the base model alone, without `get_peft_model`. To add an adapter to a `PeftModel`, call
its `load_adapter`.
"""

import sys
import tempfile

from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn

CONFIG = LoraConfig(r=1, target_modules=["layer"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.layer(x)


def failing(folder):
    return PeftModel.from_pretrained(get_peft_model(Model(), CONFIG), folder)


def fixed(folder):
    return PeftModel.from_pretrained(Model(), folder)


def wrapped_again(folder):
    return get_peft_model(PeftModel.from_pretrained(Model(), folder), CONFIG)


def load_adapter(folder):
    model = get_peft_model(Model(), CONFIG)
    model.load_adapter(folder, "default")
    return model


VARIANTS = {v.__name__: v for v in (failing, fixed, wrapped_again, load_adapter)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    trained = get_peft_model(Model(), CONFIG)
    nn.init.constant_(trained.base_model.model.layer.lora_B["default"].weight, 3.0)
    with tempfile.TemporaryDirectory() as folder:
        trained.save_pretrained(folder)
        model = VARIANTS[variant](folder)
    got = next(parameter.item() for name, parameter in model.named_parameters() if "lora_B" in name)
    assert got == 3.0, f"expected the loaded lora_B 3.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
