"""The recall of the best one and two answers to two questions, the second of which has its right ones further below."""

from __future__ import annotations

import torch
from torchmetrics.retrieval import RetrievalRecall

questions = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
scores = torch.tensor([0.2, 0.3, 0.5, 0.1, 0.3, 0.5, 0.2, 0.7])
right = torch.tensor([False, False, True, False, True, False, True, False])
recalls = [RetrievalRecall(top_k=number)(scores, right, indexes=questions).item() for number in (1, 2)]
print("recall", recalls)
