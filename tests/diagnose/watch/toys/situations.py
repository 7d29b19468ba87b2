"""What the situations share: small networks, their training, and the results; `run` writes them to a file.

Each situation returns a module, a state or numbers; it begins with the same random numbers whichever ran before.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
CAN_COMPILE = sys.version_info < (3, 11) or VERSION >= (2, 1)
SITUATIONS = {}


def situation(make):
    SITUATIONS[make.__name__] = make
    return make


def since(*version):
    return lambda make: situation(make) if version <= VERSION else make


def compiling(make):
    return situation(make) if CAN_COMPILE else make


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))


def batch():
    return torch.randn(8, 4)


def train(model, optimizer=None, steps=4, forward=None):
    optimizer = torch.optim.AdamW(model.parameters(), 0.01) if optimizer is None else optimizer
    forward = model if forward is None else forward
    for _ in range(steps):
        optimizer.zero_grad()
        forward(batch()).square().mean().backward()
        optimizer.step()
    return model


def counted():
    """Return how often dynamo broke a graph, and how many it made."""
    from torch._dynamo.utils import counters

    return sum(counters["graph_break"].values()), counters["stats"]["unique_graphs"]


def plain(result):
    """Return what a situation gave, without classes that a file could not hold."""
    if isinstance(result, nn.Module):
        return dict(result.state_dict())
    return [plain(item) for item in result] if isinstance(result, (list, tuple)) else result


def run(file, names):
    """Run the situations of these names, or all, and write the results by name."""
    results = {}
    # First what forks: what torch 2.15 compiles starts threads of autograd, after which no child may train.
    for name in names or sorted(SITUATIONS, key=lambda name: name != "forked"):
        torch.manual_seed(0)
        if "torch._dynamo" in sys.modules:
            sys.modules["torch._dynamo"].reset()
            sys.modules["torch._dynamo.utils"].counters.clear()
        results[name] = plain(SITUATIONS[name]())
    torch.save(results, file)
