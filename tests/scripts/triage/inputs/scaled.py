from __future__ import annotations

import torch
from torch.amp import GradScaler

scaler = GradScaler(init_scale=2.0**16)
model = torch.nn.Linear(2, 2).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
loss = model(torch.ones(2, 2)).sum()
scaler.scale(loss).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(opt)
