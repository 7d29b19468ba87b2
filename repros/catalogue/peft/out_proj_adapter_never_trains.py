# /// script
# dependencies = ["torch>=2.0", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0156"
# title = "LoRA on the out_proj of MultiheadAttention never gets a gradient"
# kind = "limitation"
# documented = "https://github.com/huggingface/peft/issues/761"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/761",
#     "https://github.com/huggingface/peft/issues/2200",
#     "https://github.com/helicalAI/helical/pull/405",
#     "https://github.com/Baijiong-Lin/LoRA-Torch/issues/3",
# ]
# upstream.related = ["https://github.com/huggingface/peft/pull/1324"]
# packages = ["peft"]
# home = "2025-11"
# silent = true
# finds = ["adapter_bypassed"]
#
# [tool.repro.variants.failing]
# about = 'target_modules = ["out_proj", "linear1"] of a TransformerEncoderLayer'
# raises = "AssertionError"
# match = "expected at least 2 trained layers, got 1"
#
# [tool.repro.variants.fixed]
# about = 'the attention itself as a target: ["self_attn", "linear1"]'
# source = "https://github.com/huggingface/peft/pull/1324"
# requires = ["peft>=0.15"]
#
# [tool.repro.variants.full_name]
# outcome = "fails"
# about = 'the layer by its full name: "self_attn.out_proj"'
#
# [tool.repro.variants.called_as_module]
# outcome = "passes"
# about = "an attention of one's own that calls out_proj as a module"
# source = "https://github.com/helicalAI/helical/pull/405"
# ///
"""Of the layers with LoRA, the output projection of the attention stays untrained.

Symptom: `lora_B` of `out_proj` is still zero after the training, its gradient is None, and the layer counts as
trainable. Silent as long as another layer is adapted. Where it is the only one, `backward()` raises "element 0 of tensors
does not require grad".

Cause: `nn.MultiheadAttention` never calls `out_proj`. It hands `out_proj.weight` to
`F.multi_head_attention_forward`, and an adapter is in the module's `forward`.

Fix: target the attention module, which PEFT adapts as a whole from 0.15 on. Or an attention that calls its projection.
"""

import sys

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """Self-attention with one head."""

    def __init__(self, size):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x, *_, **__):
        return self.out_proj(functional.scaled_dot_product_attention(*self.in_proj(x).chunk(3, dim=-1))), None


def adapt(layer, *targets):
    return get_peft_model(layer, LoraConfig(r=2, target_modules=list(targets)))


def failing(layer):
    return adapt(layer, "out_proj", "linear1")


def fixed(layer):
    return adapt(layer, "self_attn", "linear1")


def full_name(layer):
    return adapt(layer, "self_attn.out_proj", "linear1")


def called_as_module(layer):
    layer.self_attn = Attention(8)
    return adapt(layer, "out_proj", "linear1")


VARIANTS = {v.__name__: v for v in (failing, fixed, full_name, called_as_module)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    layer = nn.TransformerEncoderLayer(d_model=8, nhead=1, dim_feedforward=8, batch_first=True)
    model = VARIANTS[variant](layer)
    model(torch.randn(1, 3, 8)).pow(2).sum().backward()
    # In LoRA's first step, B gets a gradient and A's is zero, since B is.
    # That is linear1 and, with the attention as a target, its input and its output projection.
    got = sum("lora_B" in name and parameter.grad is not None for name, parameter in model.named_parameters())
    assert got >= 2, f"expected at least 2 trained layers, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
