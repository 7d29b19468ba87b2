"""Programs that end without a further step: `python states.py loaded changed`."""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = sys.argv[1]
CHANGED = sys.argv[2:] == ["changed"]
INPUTS = torch.arange(12.0).reshape(4, 3)


class Net(nn.Module):
    """What is trained."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        return self.layers(x) * self.scale


def train(net, steps=2):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        net(INPUTS).mean().backward()
        optimizer.step()
    return optimizer


def loaded(net):
    """Load a state, and end."""
    states = train(net).state_dict()
    again = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    if not CHANGED:
        again.load_state_dict(states)


def buffers(net):
    """Change what no optimizer has, and end."""
    train(net)
    net.scale.fill_(2.0 if CHANGED else 1.0)


def frozen(net):
    """Freeze a part after the last step, and end."""
    train(net)
    net.layers[0].requires_grad_(not CHANGED)


def merged(net):
    """Evaluate, change a weight and evaluate again, without gradients."""
    train(net)
    with torch.no_grad():
        net(INPUTS)
        net.layers[2].weight.data += 1.0
        if CHANGED:
            net.layers[2].weight.data -= 0.5
        net(INPUTS)


def unused(net):
    """Call the model with gradients, on other rows, and use the result for nothing."""
    train(net, 1)
    net(INPUTS + CHANGED)
    train(net, 1)


def last(net):
    """The same after the last step."""
    train(net, 1)
    net(INPUTS + CHANGED)


def loader(_):
    """Read a loader, and call no module."""
    for _batch in DataLoader(TensorDataset(INPUTS), batch_size=2 - CHANGED, drop_last=True):
        if CHANGED:
            break


def second(net):
    """Evaluate two models of one class, of which the second differs."""
    train(net, 1)
    other = Net()
    other.load_state_dict(net.state_dict())
    if CHANGED:
        torch.nn.init.ones_(other.layers[2].weight)
    with torch.no_grad():
        net(INPUTS)
        other(INPUTS)


def prepared(net):
    """Read the state of an optimizer that has not stepped: the helper steps with a learning rate of zero."""
    from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    if CHANGED:
        get_optimizer_state_dict(net, optimizer)
    for _ in range(2):
        optimizer.zero_grad()
        net(INPUTS).mean().backward()
        optimizer.step()


def score(_):
    """Compute a metric by its methods."""
    from torchmetrics.classification import BinaryF1Score

    metric = BinaryF1Score()
    metric.update(torch.tensor([0.1, 0.9, 0.8]), torch.tensor([0, 1, 0]))
    if CHANGED:
        metric.reset()
    metric.compute()


if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[KIND](Net())
