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


def left_in_eval():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(model, optimizer, 3)
    with torch.no_grad():
        model.eval()(torch.randn(8, 4))
    return train(model, optimizer, 2)


def compiled():
    model = network()
    train(torch.compile(model, backend="eager"), torch.optim.SGD(model.parameters(), 0.1))
    return model


def compiled_left_in_eval():
    model = network()
    model.compile(backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(model, optimizer, 3)
    train(model.eval(), optimizer, 2)
    return model


def evaluated_in_step_three():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(model, optimizer, 2)
    return train(model.eval(), optimizer, 1)


def frozen_backbone():
    model = nn.Sequential(network().eval(), nn.Linear(1, 1))
    return train(model, torch.optim.SGD(model.parameters(), 0.1))


def scheduled(kind=torch.optim.lr_scheduler.LambdaLR, option=lambda epoch: 0.5**epoch):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    scheduler = kind(optimizer, option)
    return model, optimizer, scheduler


def epochs(model, optimizer, scheduler, number=3):
    for _ in range(number):
        train(model, optimizer, 2)
        scheduler.step()
    return model


def saved(*made):
    epochs(*made)
    return [copy.deepcopy(part.state_dict()) for part in made]


def resumed():
    states, made = saved(*scheduled()), scheduled()
    for part, state in zip(made, states, strict=True):
        part.load_state_dict(state)
    return epochs(*made)


def resumed_by_steps():
    states, (model, optimizer, scheduler) = saved(*scheduled()), scheduled()
    optimizer.load_state_dict(states[1])
    for _ in range(3):
        scheduler.step()
    return epochs(model, optimizer, scheduler)


def resumed_multiplying():
    exponential = (torch.optim.lr_scheduler.ExponentialLR, 0.5)
    states, (model, optimizer, scheduler) = saved(*scheduled(*exponential)), scheduled(*exponential)
    optimizer.load_state_dict(states[1])
    return epochs(model, optimizer, scheduler)


def resumed_without_scheduler():
    states, (model, optimizer, scheduler) = saved(*scheduled()), scheduled()
    optimizer.load_state_dict(states[1])
    return epochs(model, optimizer, scheduler)


def scheduler_made_last():
    cycle = torch.optim.lr_scheduler.OneCycleLR
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    states = saved(model, optimizer, cycle(optimizer, 0.1, 100))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.load_state_dict(states[1])
    scheduler = cycle(optimizer, 0.1, 100)
    scheduler.load_state_dict(states[2])
    return epochs(model, optimizer, scheduler)


def scaled(model, optimizer, scaler):
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(1e-6 * model(torch.randn(8, 4)).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
    return model


def resumed_with_scaler():
    model, scaler = network(), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.Adam(model.parameters())
    scaled(model, optimizer, scaler)
    states = copy.deepcopy([optimizer.state_dict(), scaler.state_dict()])
    optimizer, scaler = torch.optim.Adam(model.parameters()), torch.amp.GradScaler("cpu")
    optimizer.load_state_dict(states[0])
    scaler.load_state_dict(states[1])
    return scaled(model, optimizer, scaler)


def resumed_without_scaler():
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    scaled(model, optimizer, torch.amp.GradScaler("cpu"))
    state = copy.deepcopy(optimizer.state_dict())
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(state)
    return scaled(model, optimizer, torch.amp.GradScaler("cpu"))


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
    optimizer = torch.optim.SGD([part.clone().detach().requires_grad_() for part in model.parameters()], 0.1)
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
