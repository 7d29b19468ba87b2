# /// script
# dependencies = ["torch>=2.0", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0138"
# title = "alpaca-lora's override of state_dict saves an adapter without weights"
# kind = "misuse"
# documented = "https://github.com/huggingface/peft/issues/286"
# upstream.reports = [
#     "https://github.com/tloen/alpaca-lora/issues/293",
#     "https://github.com/tloen/alpaca-lora/issues/319",
#     "https://github.com/tloen/alpaca-lora/issues/363",
#     "https://github.com/tloen/alpaca-lora/issues/446",
#     "https://github.com/tloen/alpaca-lora/issues/539",
#     "https://github.com/huggingface/peft/issues/286",
#     "https://github.com/PhoebusSi/Alpaca-CoT/issues/111",
# ]
# packages = ["peft"]
# affected = ["peft<0.20"]
# home = "2025-11"
# silent = true
# finds = ["adapter_saved_empty"]
#
# [tool.repro.variants.failing]
# about = "state_dict returns get_peft_model_state_dict, as in alpaca-lora's finetune.py"
# raises = "AssertionError"
# match = "expected 8 saved numbers, got 0"
#
# [tool.repro.variants.fixed]
# about = "no override: save_pretrained picks the adapter's weights itself"
# source = "https://github.com/tloen/alpaca-lora/issues/539"
#
# [tool.repro.variants.override_deleted]
# outcome = "passes"
# about = "the override deleted before saving"
#
# [tool.repro.variants.state_handed_over]
# outcome = "passes"
# about = "save_pretrained(state_dict=...) with the state of before the override"
#
# [tool.repro.variants.without_safetensors]
# outcome = "fails"
# about = "safe_serialization=False: an empty adapter_model.bin"
# ///
"""A training that copied a snippet from alpaca-lora saves nothing.

Symptom: `adapter_model.bin` has 443 bytes, or `adapter_model.safetensors` has 40, and the loaded model answers like the
base. Silent when it is saved. From PEFT 0.14 on, loading warns: "Found missing adapter keys while loading the checkpoint".

Cause: the snippet makes `model.state_dict()` return `get_peft_model_state_dict(...)`, for a PEFT that did not select the
weights itself. `save_pretrained` calls that function again. It keeps keys that have the adapter's name, which the first
call has removed from them.

Fix: leave the snippet out. PEFT 0.20 accepts keys without the name.
"""

import os
import sys
import tempfile

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4, bias=False)

    def forward(self, x):
        return self.layer(x)


def override(model):
    old_state_dict = model.state_dict
    model.state_dict = (lambda self, *_, **__: get_peft_model_state_dict(self, old_state_dict())).__get__(
        model, type(model)
    )


def failing(model, folder):
    override(model)
    model.save_pretrained(folder)


def fixed(model, folder):
    model.save_pretrained(folder)


def override_deleted(model, folder):
    override(model)
    del model.state_dict
    model.save_pretrained(folder)


def state_handed_over(model, folder):
    state = model.state_dict()
    override(model)
    model.save_pretrained(folder, state_dict=state)


def without_safetensors(model, folder):
    override(model)
    model.save_pretrained(folder, safe_serialization=False)


VARIANTS = {v.__name__: v for v in (failing, fixed, override_deleted, state_handed_over, without_safetensors)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = get_peft_model(Model(), LoraConfig(r=1, target_modules=["layer"]))
    with tempfile.TemporaryDirectory() as folder:
        VARIANTS[variant](model, folder)
        pickled = os.path.join(folder, "adapter_model.bin")
        if os.path.exists(pickled):
            got = sum(tensor.numel() for tensor in torch.load(pickled, weights_only=True).values())
        else:
            with open(os.path.join(folder, "adapter_model.safetensors"), "rb") as file:
                # The length of the header in eight bytes, the header, and then the numbers of all tensors.
                file.seek(int.from_bytes(file.read(8), "little"), os.SEEK_CUR)
                got = len(file.read()) // 4
    # lora_A and lora_B of one layer have four numbers each.
    assert got == 8, f"expected 8 saved numbers, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
