"""Pearson's coefficient of four samples that come one by one."""

from __future__ import annotations

import torch
from torchmetrics import PearsonCorrCoef

coefficient = PearsonCorrCoef()
for guess, truth in ((3.0, 2.5), (-0.5, 0.0), (2.0, 2.0), (7.0, 8.0)):
    coefficient(torch.tensor([guess]), torch.tensor([truth]))
print("coefficient", round(coefficient.compute().item(), 4))
