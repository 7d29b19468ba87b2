"""Trains mmcls's own VGG with `frozen_stages=1`; `frozen_stages.py failing` never calls `train()` (mmpretrain#702)."""

from __future__ import annotations

import sys

import torch
from mmcls.models import VGG
from torch import nn

torch.manual_seed(0)
model = VGG(11, out_indices=(2,), frozen_stages=1, norm_cfg={"type": "BN"})
head = nn.Linear(256, 10)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], 0.01, momentum=0.9)
if sys.argv[1] == "fixed":
    model.train()
first = model.features[0].conv.weight
before = first.detach().clone()
for _ in range(4):
    optimizer.zero_grad()
    scores = head(model(torch.randn(4, 3, 32, 32))[0].mean((2, 3)))
    nn.functional.cross_entropy(scores, torch.randint(10, (4,))).backward()
    optimizer.step()
print("the frozen stage has", "stayed" if torch.equal(before, first) else "moved")
