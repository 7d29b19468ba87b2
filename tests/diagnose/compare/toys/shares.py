"""A training on one rank or several whose ranks have a batch of 8 rows each: `python shares.py loss=divided`."""

from __future__ import annotations

import os
import sys

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

words = dict(word.split("=", 1) for word in sys.argv[1:])
torch.manual_seed(0)
distributed.init_process_group("gloo")
data = TensorDataset(torch.randn(64, 6), torch.randn(64, 3))
model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
sampler = DistributedSampler(data)
if words.get("batches") == "by_hand":
    loader = [data[torch.tensor([*sampler]).view(-1, 8)[number]] for number in range(2)]
else:
    loader = DataLoader(data, batch_size=8, sampler=sampler)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    (loss / int(os.environ["WORLD_SIZE"]) if words.get("loss") == "divided" else loss).backward()
    if "clip" in words:
        clipped = {"own": model, "other": nn.Linear(1, 1)}[words["clip"]]
        nn.utils.clip_grad_norm_(clipped.parameters(), 0.1)
    optimizer.step()
distributed.destroy_process_group()
