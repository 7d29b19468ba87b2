"""A whole column of a dataset in numpy's format."""

from __future__ import annotations

from datasets import Dataset

stars = Dataset.from_dict({"star": [1, 2, 3]}).with_format("numpy")["star"]
print("dimensions", stars.ndim)
