"""What small trainings share: data, a network, and loops over them."""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
INPUTS, LABELS = torch.randn(64, 8), torch.randint(0, 4, (64,))


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))


def adapt(model):
    return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def batches(passes=4):
    for _ in range(passes):
        yield from torch.randperm(64).split(8)


def loss_of(model, chosen):
    return functional.cross_entropy(model(INPUTS[chosen]), LABELS[chosen])


def train(model, optimizer, passes=4, scale=None, after=None):
    for number, chosen in enumerate(batches(passes)):
        optimizer.zero_grad()
        loss = loss_of(model, chosen)
        (loss if scale is None else scale(number, loss)).backward()
        optimizer.step()
        if after is not None:
            after()
    return model


def loader():
    return DataLoader(TensorDataset(INPUTS, LABELS), batch_size=8, shuffle=True)


def train_on(data, model, optimizer, after=None):
    for x, y in data:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if after is not None:
            after()
    return model


def main(trainings):
    """Run the training that is named first, and write its final weights to the file that is named second."""
    torch.manual_seed(0)
    torch.save(trainings[sys.argv[1]]().state_dict(), sys.argv[2])
