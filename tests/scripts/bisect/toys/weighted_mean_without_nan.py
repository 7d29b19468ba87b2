"""A weighted mean that leaves out what is not a number."""

from __future__ import annotations

import torch
from torchmetrics import MeanMetric

mean = MeanMetric(nan_strategy="ignore")
mean.update(torch.tensor([1.0, float("nan"), 4.0]), weight=torch.tensor([1.0, 1.0, 2.0]))
print("mean", mean.compute().item())
