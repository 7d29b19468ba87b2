"""A student learns from a frozen teacher, with Fabric on two processes; `distil.py {called,bypassed} STRATEGY`."""

from __future__ import annotations

import sys

import torch
from lightning.fabric import Fabric
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset


class Distiller(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3)).requires_grad_(False).eval()
        self.student = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        with torch.no_grad():
            target = self.teacher(x)
        return mse_loss(self.student(x), target)


def train(fabric, how):
    fabric.seed_everything(1)
    model = Distiller()
    optimizer = torch.optim.AdamW(model.student.parameters(), 1e-2)
    model, optimizer = fabric.setup(model, optimizer)
    data = TensorDataset(torch.randn(64, 10))
    loader = fabric.setup_dataloaders(DataLoader(data, batch_size=8, shuffle=True))
    for _ in range(3):
        for (x,) in loader:
            optimizer.zero_grad()
            if how == "called":
                loss = model(x)
            else:
                with torch.no_grad():
                    target = model.teacher(x)
                loss = mse_loss(model.student(x), target)
            fabric.backward(loss)
            optimizer.step()


def main(how, strategy):
    Fabric(accelerator="cpu", devices=2, strategy=strategy).launch(train, how)


if __name__ == "__main__":
    main(*sys.argv[1:])
