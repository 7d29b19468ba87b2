# /// script
# dependencies = ["torch>=2.0", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0154"
# title = "An adapter that becomes active after the optimizer is made is never trained"
# kind = "misuse"
# documented = "https://huggingface.co/docs/peft/developer_guides/troubleshooting"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/1303",
#     "https://github.com/adapter-hub/adapters/issues/260",
# ]
# upstream.related = ["https://github.com/gke-labs/open-rl/pull/80"]
# packages = ["peft"]
# home = "2024-03"
# silent = true
# finds = ["adapter_not_in_optimizer"]
#
# [tool.repro.variants.failing]
# about = "an optimizer over the parameters that require gradients, then set_adapter"
# raises = "AssertionError"
# match = "expected the second adapter's lora_B to be -1.0, got 0.0"
#
# [tool.repro.variants.fixed]
# about = "set_adapter first, then the optimizer"
#
# [tool.repro.variants.all_parameters]
# outcome = "passes"
# about = "an optimizer over all parameters, which skips those without a gradient"
#
# [tool.repro.variants.gradients_by_hand]
# outcome = "fails"
# about = "requires_grad = True on the second adapter after set_adapter, which has done that already"
# claim = "setting requires_grad to True makes the second adapter train"
# source = "https://github.com/huggingface/peft/issues/1303"
# ///
"""Two adapters are trained one after the other, and only the first one changes.

Symptom: after `set_adapter("second")` the loss stays where it is. The second adapter requires gradients and gets them.
Silent.

Cause: since PEFT 0.6 only the active adapter requires gradients; up to 0.5 all did. An optimizer over `p for p in model.parameters() if p.requires_grad`,
which is what `transformers.Trainer` makes at its first `train()` and keeps, has the first adapter's parameters alone.

Fix: make the optimizer, or the Trainer, after `set_adapter`, or give it all parameters.
"""

import sys

import torch
from peft import LoraConfig, get_peft_model
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.layer(x)


def trainable(model):
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def failing(model):
    optimizer = torch.optim.SGD(trainable(model), lr=1.0)
    model.set_adapter("second")
    return optimizer


def fixed(model):
    model.set_adapter("second")
    return torch.optim.SGD(trainable(model), lr=1.0)


def all_parameters(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.set_adapter("second")
    return optimizer


def gradients_by_hand(model):
    optimizer = torch.optim.SGD(trainable(model), lr=1.0)
    model.set_adapter("second")
    for name, parameter in model.named_parameters():
        if ".second." in name:
            parameter.requires_grad = True
    return optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed, all_parameters, gradients_by_hand)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    config = LoraConfig(r=1, lora_alpha=1, target_modules=["layer"])
    model = get_peft_model(Model(), config, adapter_name="first")
    model.add_adapter("second", config)
    optimizer = VARIANTS[variant](model)
    adapted = model.base_model.model.layer
    nn.init.ones_(adapted.lora_A["second"].weight)
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    # The output is (w + B * A) * x with A = x = 1: the gradient of B is 1, and B goes from 0 to -1.
    got = adapted.lora_B["second"].weight.item()
    assert got == -1.0, f"expected the second adapter's lora_B to be -1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
