"""The Dice score of each class."""

from __future__ import annotations

import torch
from torchmetrics import Dice

score = Dice(average="none", num_classes=3)
print(score(torch.tensor([0, 1, 2, 1]), torch.tensor([0, 1, 1, 1])))
