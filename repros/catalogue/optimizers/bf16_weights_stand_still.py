# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0091"
# title = "Weights in bfloat16 do not move: each update is rounded away"
# kind = "limitation"
# documented = "https://github.com/pytorch/ao/pull/1124"
# upstream.reports = ["https://github.com/meta-pytorch/torchtune/issues/2254"]
# upstream.related = [
#     "https://github.com/bghira/SimpleTuner/pull/2396",
#     "https://github.com/pytorch/ao/pull/1124",
#     "https://github.com/pytorch/pytorch/issues/120376",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "100 steps of AdamW with lr 0.001 on a weight of 1 in bfloat16"
# raises = "AssertionError"
# match = "expected the weight 0.9 after 100 steps, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "weights in float32, which the computation casts"
#
# [tool.repro.variants.master_weights]
# outcome = "passes"
# about = "a copy of the weights in float32 takes the steps"
#
# [tool.repro.variants.fused]
# outcome = "fails"
# about = "the fused optimizer rounds as well"
# devices = ["cuda", "sim"]
# ///
"""A model in pure bfloat16 learns nothing, or only its largest gradients do.

Symptom: after `model.bfloat16()` the loss stays near where it began, though gradients are there; small learning rates
stand still altogether. Silent.

Cause: bfloat16 has 8 bits of precision: the next number below 1 is 0.99609375. A step smaller than half of that
distance, 0.00195, is rounded back to the old weight, each time anew. The distance shrinks with the weight: small weights
move, and those near 1, such as a norm's, stand still. Autocast does not help where the weights are in bfloat16 already:
transformers 5 loads a checkpoint in its own dtype by default (`dtype="auto"`).

Fix: keep the weights, or a master copy, in float32 (`dtype=torch.float32` at the load) and compute in bfloat16 under
autocast, or round stochastically, as torchao's optimizers do with `bf16_stochastic_round=True`.

Watch: `parameters_unchanged` finds it, whatever the cause is, and so cannot name it.
"""

import sys

import torch


def train(weight, optimizer):
    for _ in range(100):
        optimizer.zero_grad()
        weight.sum().backward()  # a gradient of 1: AdamW moves by the learning rate
        optimizer.step()
    return weight


def failing(device):
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16, device=device))
    return train(weight, torch.optim.AdamW([weight], lr=1e-3, weight_decay=0.0))


def fixed(device):
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float32, device=device))
    return train(weight, torch.optim.AdamW([weight], lr=1e-3, weight_decay=0.0))


def master_weights(device):
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16, device=device))
    master = torch.nn.Parameter(weight.detach().float())
    optimizer = torch.optim.AdamW([master], lr=1e-3, weight_decay=0.0)
    for _ in range(100):
        weight.grad = None
        weight.sum().backward()
        master.grad = weight.grad.float()
        optimizer.step()
        weight.data.copy_(master)
    return weight


def fused(device):
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16, device=device))
    return train(weight, torch.optim.AdamW([weight], lr=1e-3, weight_decay=0.0, fused=True))


VARIANTS = {v.__name__: v for v in (failing, fixed, master_weights, fused)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = round(VARIANTS[variant](accelerator).item(), 2)
    assert got == 0.9, f"expected the weight 0.9 after 100 steps, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
