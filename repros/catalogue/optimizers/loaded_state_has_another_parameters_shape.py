# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0185"
# title = "The first step after a resume fails: a moment has another parameter's shape"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html"
# upstream.reports = [
#     "https://github.com/X-LANCE/text2sql-lgesql/issues/18",
#     "https://github.com/piergiaj/pytorch-i3d/issues/38",
#     "https://github.com/pytorch/pytorch/issues/40769",
#     "https://github.com/roytseng-tw/Detectron.pytorch/issues/37",
# ]
# upstream.related = ["https://github.com/HRNet/HRNet-Semantic-Segmentation/issues/252"]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
#
# [tool.repro.variants.failing]
# about = "the state of AdamW is loaded with its two parameters the other way round"
# raises = "RuntimeError"
# match = "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"
# frames = ["torch/optim/adamw.py:step"]
#
# [tool.repro.variants.fixed]
# about = "the optimizer gets its parameters in the order of their names"
# source = "https://github.com/piergiaj/pytorch-i3d/issues/38"
#
# [tool.repro.variants.momentum]
# outcome = "fails"
# about = "SGD with momentum"
#
# [tool.repro.variants.without_foreach]
# outcome = "fails"
# about = "foreach=False: the loop of single tensors"
# ///
"""`load_state_dict` accepts an optimizer's state that belongs to other parameters, and `step()` raises.

Symptom: `RuntimeError: The size of tensor a (768) must match the size of tensor b (2) at non-singleton dimension 0` from
`optimizer.step()` after a resume, at an operation on `exp_avg` or `momentum_buffer`. Without the optimizer's state the
training goes on.

Cause: a state dict knows parameters by their position. `load_state_dict` compares the number of groups and of parameters
in each, and no shapes. The order differs where it comes from a set or from `named_parameters()` of changed code, where
layers were frozen and left out, or where groups are made by a rule (weight decay and none).

Fix: make the order a function of names: groups from lists that are sorted by name, the same in both runs. A file that
was written in another order needs its state reordered once, by the names of the program that wrote it.

Apart: where the two shapes agree nothing is raised, which is RPR-0084.
"""

import sys

import torch


def adamw(named):
    return torch.optim.AdamW([parameter for _, parameter in named], lr=0.1)


def failing(named):
    return adamw(named)


def fixed(named):
    return adamw(sorted(named))


def momentum(named):
    return torch.optim.SGD([parameter for _, parameter in named], lr=0.1, momentum=0.9)


def without_foreach(named):
    return torch.optim.AdamW([parameter for _, parameter in named], lr=0.1, foreach=False)


VARIANTS = {v.__name__: v for v in (failing, fixed, momentum, without_foreach)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    a, b = (torch.nn.Parameter(torch.zeros(size, device=accelerator)) for size in (2, 3))
    a.grad, b.grad = torch.ones_like(a), torch.ones_like(b)
    first = VARIANTS[variant]([("a", a), ("b", b)])
    first.step()
    # The same model, which defines its layers the other way round.
    second = VARIANTS[variant]([("b", b), ("a", a)])
    second.load_state_dict(first.state_dict())
    second.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
