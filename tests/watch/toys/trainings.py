"""Trainings of a few steps, healthy and not; `trainings.py NAME FILE` writes the final weights to FILE."""

from __future__ import annotations

import copy
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))


def train(model, optimizer, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    return model


def plain():
    model = network()
    return train(model, torch.optim.AdamW(model.parameters(), 0.01))


def fused():
    model = network()
    return train(model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, foreach=True))


def gan():
    generator, critic = network(), network()
    first, second = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    widen = nn.Linear(1, 4)
    for _ in range(4):
        first.zero_grad()
        critic(widen(generator(torch.randn(8, 4)))).mean().backward()
        first.step()
        second.zero_grad()  # what the generator's loss has left there
        critic(torch.randn(8, 4)).mean().backward()
        second.step()
    return generator


def frozen_statistics():
    model = network()
    model[1].eval()
    return train(model, torch.optim.SGD(model.parameters(), 0.1))


def eval_mode():
    model = network().eval()
    return train(model, torch.optim.SGD(model.parameters(), 0.1))


def attack():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(4):
        model.eval()
        x = torch.randn(8, 4, requires_grad=True)
        model(x).sum().backward()
        model.train()
        optimizer.zero_grad()
        model(x.detach() + 0.1 * x.grad.sign()).mean().backward()
        optimizer.step()
    return model


def other_parameters():
    model = network()
    optimizer = torch.optim.SGD([one.clone().detach().requires_grad_() for one in model.parameters()], 0.1)
    return train(model, optimizer)


def accumulation():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(8):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.randn(8, 4)).mean()
        loss.backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    return model


def by_hand():
    model = network()
    for _ in range(4):
        model(torch.randn(8, 4)).mean().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(0.1 * parameter.grad)
            model.zero_grad()
    return model


def rolled_back():
    model = nn.Linear(4, 1)
    kept = copy.deepcopy(train(model, optimizer := torch.optim.Adam(model.parameters())) and optimizer.state_dict())
    for _ in range(2):
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.load_state_dict(kept)
        train(model, optimizer)
    return model


def checkpointed():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for reentrant in (True, False):
        x = torch.randn(8, 4, requires_grad=True)
        checkpoint(model, x, use_reentrant=reentrant).mean().backward()
        optimizer.step()
    return model


def functional():
    model = nn.Linear(4, 1)
    parameters = dict(model.named_parameters())

    def loss(values, x):
        return torch.func.functional_call(model, values, (x,)).mean()

    gradients = torch.func.grad(loss)(parameters, torch.randn(8, 4))
    for name, parameter in model.named_parameters():
        parameter.grad = gradients[name]
    torch.optim.SGD(model.parameters(), 0.1).step()
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(globals()[sys.argv[1]]().state_dict(), sys.argv[2])
