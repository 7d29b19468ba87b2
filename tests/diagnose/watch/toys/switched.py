"""Trainings of networks whose modes are switched, healthy and not; `switched.py NAME FILE` writes the final weights."""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody does
from trainings import train


class FreezingTrain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def train(self, mode=True):
        super().train(mode)
        self._freeze()
        return self

    def _freeze(self):
        for parameter in self.first.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        return self.second(self.first(x))


class FrozenBefore(FreezingTrain):
    def __init__(self):
        super().__init__()
        self._freeze()


class Dropping(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5)


class DroppingInTraining(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, self.training)


class MonteCarlo(nn.Module):
    def forward(self, x):
        return F.dropout(x, p=0.5, training=True)


class Attending(nn.Module):
    def __init__(self, rate=0.1):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        return F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=self.rate)[0]


def around(module):
    return nn.Sequential(nn.Linear(4, 4), module, nn.Linear(4, 1))


def evaluated(module):
    model = around(module)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        train(model, optimizer, 3)
        with torch.no_grad():
            model.eval()(torch.randn(8, 4))
        model.train()
    return model


def trained_without_train():
    model = around(FreezingTrain())
    return train(model, torch.optim.SGD(model.parameters(), 0.1))


def trained_with_train():
    model = around(FreezingTrain()).train()
    return train(model, torch.optim.SGD(model.parameters(), 0.1))


def frozen_before_train():
    model = around(FrozenBefore())
    return train(model, torch.optim.SGD(model.parameters(), 0.1))


def dropping():
    return evaluated(Dropping())


def dropping_in_training():
    return evaluated(DroppingInTraining())


def monte_carlo():
    return evaluated(MonteCarlo())


def attending():
    return evaluated(Attending())


def attending_without_dropout():
    return evaluated(Attending(0.0))


def normalised(prepare, apply=nn.utils.spectral_norm):
    model = around(apply(nn.Linear(4, 32)))
    model[2] = nn.Linear(32, 1)
    prepare(model)
    with torch.no_grad():
        model.eval()(torch.randn(8, 4))
    return train(model.train(), torch.optim.SGD(model.parameters(), 0.1))


def norm_before_training():
    return normalised(lambda model: None)


def norm_after_a_pass():
    return normalised(lambda model: model(torch.randn(8, 4)))


def norm_parametrized():
    return normalised(lambda model: None, nn.utils.parametrizations.spectral_norm)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(globals()[sys.argv[1]]().state_dict(), sys.argv[2])
