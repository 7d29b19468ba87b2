# /// script
# dependencies = ["torch>=2.1"]
#
# [tool.repro]
# id = "RPR-0070"
# title = "load_state_dict(assign=True) leaves the optimizer with old parameters"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict"
# upstream.reports = ["https://github.com/pytorch/pytorch/issues/188346"]
# upstream.related = [
#     "https://github.com/huggingface/accelerate/issues/1204",
#     "https://github.com/pytorch/tutorials/pull/2522",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "make the optimizer, load with assign=True, and train"
# raises = "AssertionError"
# match = "expected the weight 4.0 after eight steps, got 5.0"
#
# [tool.repro.variants.fixed]
# about = "make the optimizer after the load"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict"
#
# [tool.repro.variants.copied]
# outcome = "passes"
# contrast = true
# about = "without assign the values are copied into the parameters"
#
# [tool.repro.variants.swapped]
# outcome = "passes"
# about = "let loads swap the parameter's contents instead"
# requires = ["torch>=2.3"]
# ///
"""A model that was loaded with assign=True is not trained.

Symptom: the loss does not fall after a checkpoint was loaded with `assign=True`, as for a model on the meta device.
Silent.

Cause: with `assign=True` the module gets new `Parameter` objects that hold the checkpoint's tensors. An optimizer that
was made before holds the old ones, which have no gradients any more, so that its steps change nothing.

Fix: make the optimizer afterwards, or set `torch.__future__.set_swap_module_params_on_conversion(True)`, with which the
parameters stay the same objects.

Watch: `steps_without_gradients` finds it, whatever the cause is, and so cannot name it.
"""

import sys

import torch


def failing(layer, state):
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.25)
    layer.load_state_dict(state, assign=True)
    return optimizer


def fixed(layer, state):
    layer.load_state_dict(state, assign=True)
    return torch.optim.SGD(layer.parameters(), lr=0.25)


def copied(layer, state):
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.25)
    layer.load_state_dict(state)
    return optimizer


def swapped(layer, state):
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.25)
    torch.__future__.set_swap_module_params_on_conversion(True)
    layer.load_state_dict(state, assign=True)
    return optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed, copied, swapped)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    layer = torch.nn.Linear(1, 1, bias=False, device=accelerator)
    optimizer = VARIANTS[variant](layer, {"weight": torch.full((1, 1), 5.0, device=accelerator)})
    for _ in range(8):
        optimizer.zero_grad()
        layer(torch.full((1, 1), 0.5, device=accelerator)).sum().backward()
        optimizer.step()
    got = layer.weight.item()  # eight times a quarter of the gradient, 0.5
    assert got == 4.0, f"expected the weight 4.0 after eight steps, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
