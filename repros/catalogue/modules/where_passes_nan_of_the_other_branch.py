# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0093"
# title = "A NaN gradient of masked elements passes through torch.where or masked_fill"
# kind = "by design"
# documented = "https://github.com/pytorch/pytorch/issues/68425"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/4132",
#     "https://github.com/pytorch/pytorch/issues/17455",
#     "https://github.com/pytorch/pytorch/issues/18287",
#     "https://github.com/pytorch/pytorch/issues/23156",
#     "https://github.com/pytorch/pytorch/issues/52248",
#     "https://github.com/pytorch/pytorch/issues/36923",
#     "https://github.com/pytorch/pytorch/issues/68425",
#     "https://github.com/pytorch/pytorch/issues/108618",
#     "https://github.com/pytorch/pytorch/issues/156212",
#     "https://github.com/pytorch/pytorch/issues/187297",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "mask the output of a square root: where(x > 0, sqrt(x), 0)"
# raises = "AssertionError"
# match = "expected the gradient 0.0 where the input is masked, got nan"
#
# [tool.repro.variants.fixed]
# about = "mask the input as well, so that the other branch has a finite gradient"
# source = "https://github.com/pytorch/pytorch/issues/68425"
#
# [tool.repro.variants.multiplied]
# outcome = "fails"
# about = "a product with the mask instead: zero times infinity is NaN as well"
# ///
"""A guarded square root, logarithm or division makes the weights NaN though no output was ever NaN.

Symptom: the loss is finite up to the step after which it is NaN; the guard `torch.where(x > 0, f(x), 0)` seems to
work. Silent.

Cause: both branches of `torch.where` are computed. In the backward the branch that was not taken gets a gradient of
zero, and multiplies it with its own derivative, which is infinite at the edge: 0 * inf = NaN. `masked_fill`, an
assignment to `x[mask]` and a selection by `x[mask]` after the operation do the same.

Fix: mask the input too: `torch.sqrt(torch.where(x > 0, x, 1))`.

Watch: `weights_not_finite` finds it, whatever the cause is, and so cannot name it;
`--first-nan` names the gradient that was first so, and the operation in the graph.
"""

import sys

import torch


def failing(x):
    return torch.where(x > 0, torch.sqrt(x), 0.0)


def fixed(x):
    return torch.where(x > 0, torch.sqrt(torch.where(x > 0, x, 1.0)), 0.0)


def multiplied(x):
    return torch.sqrt(x) * (x > 0)


VARIANTS = {v.__name__: v for v in (failing, fixed, multiplied)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight = torch.nn.Parameter(torch.zeros(1, device=accelerator))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        output = VARIANTS[variant](weight)
        assert output.item() == 0.0, output
        output.sum().backward()
        got = weight.grad.item()
        optimizer.step()
        assert got == 0.0, f"expected the gradient 0.0 where the input is masked, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
