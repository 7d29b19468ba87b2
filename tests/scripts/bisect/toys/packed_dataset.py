"""The dataset of trl that packs texts to one length."""

from __future__ import annotations

from trl.trainer.utils import ConstantLengthDataset

print(ConstantLengthDataset.__name__)
