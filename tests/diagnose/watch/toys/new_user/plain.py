"""A plain DDP loop; `plain.py {called,bypassed}`."""

from __future__ import annotations

import sys

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main(how):
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(128, 6), torch.randn(128, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(ddp.parameters(), 0.05)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            output = ddp(x) if how == "called" else ddp.module(x)
            nn.functional.mse_loss(output, y).backward()
            optimizer.step()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
