"""Right trainings in parallel by hand: `python parallel.py pipeline`, `tensor`; with one rank, the whole model."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

KIND = sys.argv[1]
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
INPUTS, TARGETS = torch.linspace(-1, 1, 16).reshape(4, 4), torch.linspace(1, 2, 8).reshape(4, 2)


class Net(nn.Module):
    """Two layers; a stage of a pipeline has one of them."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x):
        return self.second(self.first(x))


def pipeline(net):
    """Train the first layer on rank 0, the second one on rank 1."""
    stage = nn.ModuleDict({"stage": net.first if RANK == 0 else net.second})
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
    hidden = torch.zeros(4, 6, requires_grad=RANK == 1)
    if RANK == 0:
        hidden = stage["stage"](INPUTS)
        dist.send(hidden.detach(), 1)
        gradient = torch.zeros(4, 6)
        dist.recv(gradient, 1)
        hidden.backward(gradient)
    else:
        dist.recv(hidden.data, 0)
        nn.functional.mse_loss(stage["stage"](hidden), TARGETS).backward()
        dist.send(hidden.grad, 0)
    optimizer.step()


def tensor(net):
    """Give each rank half of the hidden units."""
    half = slice(3 * RANK, 3 * RANK + 3)
    for name, value in (("first", net.first.weight[half]), ("second", net.second.weight[:, half])):
        getattr(net, name).weight = nn.Parameter(value.detach().clone())
    net.first.bias = nn.Parameter(net.first.bias[half].detach().clone())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    part = net(INPUTS) - net.second.bias * (RANK > 0)
    other = part.detach().clone()
    dist.all_reduce(other)
    nn.functional.mse_loss(part + (other - part.detach()), TARGETS).backward()
    optimizer.step()


def whole(net):
    """Train on one rank."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    nn.functional.mse_loss(net(INPUTS), TARGETS).backward()
    optimizer.step()


if __name__ == "__main__":
    if WORLD > 1:
        dist.init_process_group("gloo")
        globals()[KIND](Net())
        dist.destroy_process_group()
    else:
        whole(Net())
