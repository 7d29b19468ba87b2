"""The mean squared error of images, a value for each pixel."""

from __future__ import annotations

import torch
from torchmetrics.functional import mean_squared_error

print(mean_squared_error(torch.ones(4, 3, 3), torch.zeros(4, 3, 3)))
