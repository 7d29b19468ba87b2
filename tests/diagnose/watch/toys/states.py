"""Trainings that load or make optimizer states; `states.py NAME FILE` writes the final weights to FILE."""

from __future__ import annotations

import copy
import sys

import torch
from torch import nn
from trainings import network, train


def skipped_first_step():
    torch.use_deterministic_algorithms(True)  # fills new memory, so that both runs find the same in it
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=2.0**-100)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(100 * model(torch.randn(8, 4)).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
    return nn.Linear(1, 1, bias=False).requires_grad_(False).apply(lambda one: one.weight.zero_())


def rolled_back():
    model = nn.Linear(4, 1)
    kept = copy.deepcopy(train(model, optimizer := torch.optim.Adam(model.parameters())) and optimizer.state_dict())
    for _ in range(2):
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.load_state_dict(kept)
        train(model, optimizer)
    return model


def optimizers_in_turn(copied, *, is_first_used):
    model, first_used = nn.Linear(4, 1), 2 if is_first_used else 0
    first, second = (torch.optim.Adam(model.parameters()) for _ in range(2))
    train(model, first, 2)
    second.load_state_dict(copied(first.state_dict()))
    train(model, second, 2)
    train(model, first, first_used)
    return train(model, second, 2)


def states_shared():
    return optimizers_in_turn(lambda state: state, is_first_used=True)


def states_copied():
    return optimizers_in_turn(copy.deepcopy, is_first_used=True)


def state_taken_over():
    return optimizers_in_turn(lambda state: state, is_first_used=False)


def state_loaded_into_itself():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        train(model, optimizer, 2)
        optimizer.load_state_dict(optimizer.state_dict())
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(globals()[sys.argv[1]]().state_dict(), sys.argv[2])
