"""Healthy trainings that are nearly a silent error; `healthy.py NAME FILE` writes the final weights to FILE."""

from __future__ import annotations

import copy
import sys

import torch
from torch import nn
from trainings import network, train


def zeroed_by_data():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(6):
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad.data.zero_()
    return model


def gan_not_detached():
    generator, critic = nn.Linear(4, 4), network()
    first, second = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(6):
        second.zero_grad(set_to_none=False)
        critic(generator(torch.randn(8, 4))).mean().backward()  # leaves gradients in the generator
        second.step()
        first.zero_grad(set_to_none=False)
        critic(generator(torch.randn(8, 4))).mean().neg().backward()
        first.step()
    return generator


def clipped_after_unscale():
    model, scaler = network(), torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(model(torch.randn(8, 4)).square().mean()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return model


def best_weights_copied():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(model, optimizer, 3)
    model.load_state_dict(model.state_dict())
    best = copy.deepcopy(model.state_dict())
    train(model, optimizer, 3)
    model.load_state_dict(best)
    return model


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        return iter(torch.arange(64.0).view(16, 4)[worker.id :: worker.num_workers])


def shared_stream():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    for batch in torch.utils.data.DataLoader(Stream(), batch_size=2, num_workers=2):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
    return model


def last_layer_alone():
    model = network()
    return train(model, torch.optim.SGD([*model[4].parameters(), nn.Parameter(torch.zeros(1))], 0.1))


def head_replaced_before():
    model = network()
    model[4] = nn.Linear(8, 2)
    unused = nn.Linear(8, 1)
    return train(model, torch.optim.SGD([*model.parameters(), *unused.parameters()], 0.1))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(globals()[sys.argv[1]]().state_dict(), sys.argv[2])
