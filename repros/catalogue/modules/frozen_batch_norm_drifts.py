# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0064"
# title = "A frozen BatchNorm goes on changing its running statistics"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/66073",
#     "https://github.com/pytorch/pytorch/issues/86590",
#     "https://github.com/open-mmlab/mmdetection/issues/560",
#     "https://github.com/tianweiy/CenterPoint/issues/168",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "requires_grad_(False) on the backbone, then an epoch in train mode"
# raises = "AssertionError"
# match = "expected the backbone's running mean to stay 0.0, got 0.2"
#
# [tool.repro.variants.fixed]
# about = "a model whose train() leaves the backbone in eval mode"
# source = "https://github.com/pytorch/pytorch/issues/66073"
#
# [tool.repro.variants.eval_once]
# outcome = "fails"
# about = "backbone.eval() once, when it is frozen: the next model.train() undoes it"
# ///
"""A fine-tuning with a frozen backbone ends with another backbone.

Symptom: features of a frozen network change during training, and evaluation gets worse though no weight of it moved.
Silent.

Cause: `requires_grad_(False)` concerns parameters. BatchNorm's `running_mean` and `running_var` are buffers, which each
forward in train mode updates. `backbone.eval()` stops that until `model.train()`, which most loops call for each epoch,
switches every submodule back.

Fix: keep the frozen part in eval mode from `train()` itself, or use a frozen BatchNorm.

Watch: no check tells it from a healthy training, since running statistics of a frozen layer are updated on purpose,
too, to adapt them to other data.
"""

import sys

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.BatchNorm1d(1))
        self.head = nn.Linear(1, 1)
        self.backbone.requires_grad_(False)

    def forward(self, x):
        return self.head(self.backbone(x))


def failing():
    return Model()


class FrozenBackbone(Model):
    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self


def fixed():
    return FrozenBackbone()


def eval_once():
    model = Model()
    model.backbone.eval()
    return model


VARIANTS = {v.__name__: v for v in (failing, fixed, eval_once)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = VARIANTS[variant]().to(accelerator)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    model.train()
    x = torch.tensor([[1.0], [3.0]], device=accelerator)  # a mean of 2, of which the momentum takes a tenth
    model(x).sum().backward()
    optimizer.step()
    got = round(model.backbone[0].running_mean.item(), 4)
    assert got == 0.0, f"expected the backbone's running mean to stay 0.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
