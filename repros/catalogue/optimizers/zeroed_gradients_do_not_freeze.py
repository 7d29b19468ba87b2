# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0095"
# title = "Parameters whose gradients are zeroed to freeze them go on moving"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html"
# upstream.reports = [
#     "https://github.com/facebookresearch/fairseq/issues/4702",
#     "https://github.com/neuralmagic/sparseml/pull/965",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "train one step, then zero the gradients before each step"
# raises = "AssertionError"
# match = "expected the frozen weight to stay 0.9, got 0.729"
#
# [tool.repro.variants.fixed]
# about = "set the gradients to None"
# source = "https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html"
#
# [tool.repro.variants.requires_no_gradient]
# outcome = "fails"
# about = "requires_grad_(False) alone leaves the zeros of the last zero_grad where they are"
# ///
"""A layer that is frozen in the middle of a training drifts on for a while.

Symptom: weights of a layer whose gradients are zeroed, by hand, by a mask or by `zero_grad(set_to_none=False)`, change at
each step; with weight decay they shrink for ever. Silent.

Cause: an optimizer skips a parameter whose gradient is None. With zeros it makes its step all the same, and momentum,
Adam's moments and weight decay move the parameter.

Fix: `parameter.grad = None`, and `requires_grad_(False)` so that none comes again; or leave it out of the optimizer.

Watch: no check tells it from a healthy training, since weights that move without a gradient are what momentum is for.
"""

import sys

import torch


def failing(weight, optimizer):
    optimizer.zero_grad(set_to_none=False)


def fixed(weight, optimizer):
    optimizer.zero_grad(set_to_none=True)


def requires_no_gradient(weight, optimizer):
    optimizer.zero_grad(set_to_none=False)
    weight.requires_grad_(False)


VARIANTS = {v.__name__: v for v in (failing, fixed, requires_no_gradient)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight = torch.nn.Parameter(torch.ones(1, device=accelerator))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    weight.sum().backward()
    optimizer.step()
    for _ in range(2):  # the momentum of 1 fades: 0.9 - 0.1 * (0.9 + 0.81)
        VARIANTS[variant](weight, optimizer)
        optimizer.step()
    got = round(weight.item(), 4)
    assert got == 0.9, f"expected the frozen weight to stay 0.9, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
