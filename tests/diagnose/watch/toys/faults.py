"""Small trainings with a silent fault in what is trained and with which gradients; `faults.py NAME FILE`."""

from __future__ import annotations

import math

import torch
from frame import INPUTS, LABELS, adapt, batches, loss_of, main, network, train
from torch import nn
from torch.nn import functional

# Which parameters move.


def nan_from_the_first_step():
    model = network()
    return train(model, adapt(model), scale=lambda _, loss: loss * math.nan)


def nan_from_the_third_step():
    model = network()
    return train(model, adapt(model), scale=lambda number, loss: loss * (math.nan if number == 2 else 1))


def rate_of_zero():
    model = network()
    return train(model, torch.optim.SGD(model.parameters(), 0.0, momentum=0.9))


def warmed_up_in_thousands():
    model = network()
    optimizer = adapt(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step // 1000)
    return train(model, optimizer, after=scheduler.step)


def rounded_away():
    model = nn.Linear(8, 4).to(torch.bfloat16)
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    for chosen in batches():
        optimizer.zero_grad()
        functional.cross_entropy(model(INPUTS[chosen].to(torch.bfloat16)), LABELS[chosen]).backward()
        optimizer.step()
    return model


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(self.first(x).detach())


class WithoutGradients(Parts):
    def forward(self, x):
        with torch.no_grad():
            hidden = self.first(x)
        return self.second(hidden)


class InList(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks = nn.Linear(8, 4), [nn.Sequential(nn.Linear(8, 8), nn.ReLU())]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.first(x)


def detached_between():
    model = Parts()
    return train(model, adapt(model))


def first_without_gradients():
    model = WithoutGradients()
    return train(model, adapt(model))


def layers_in_a_list():
    model = InList()
    return train(model, adapt(model))


def unfrozen_later():
    model = network()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD([part for part in model.parameters() if part.requires_grad], 0.1)
    train(model, optimizer, 1)
    model[0].requires_grad_(True)
    return train(model, optimizer, 3)


def listed_twice():
    model = network()
    parameters = list(model.parameters())
    return train(model, torch.optim.Adam(parameters + parameters, 0.01))


def stepped_twice():
    model = network()
    second = torch.optim.Adam(model.parameters(), 0.01)
    return train(model, torch.optim.Adam(model.parameters(), 0.01), after=second.step)


# Which gradients reach a step.


def zeroed_before_the_step():
    model = network()
    optimizer = adapt(model)
    for chosen in batches():
        loss_of(model, chosen).backward()
        optimizer.zero_grad(set_to_none=False)
        optimizer.step()
    return model


def scaled(model, optimizer, factor):
    scaler = torch.amp.GradScaler("cpu")
    for number, chosen in enumerate(batches()):
        optimizer.zero_grad()
        (scaler.scale(loss_of(model, chosen)) * factor(number)).backward()
        scaler.step(optimizer)
        scaler.update()
    return model


def every_step_skipped():
    model = network()
    return scaled(model, adapt(model), lambda _: math.inf)


def every_fused_step_skipped():
    model = network()
    return scaled(model, torch.optim.Adam(model.parameters(), fused=True), lambda _: math.inf)


def skipped_from_the_third_step():
    model = network()
    return scaled(model, adapt(model), lambda number: 1 if number < 2 else math.inf)


def scale_never_removed():
    model, scaler = network(), torch.amp.GradScaler("cpu")
    return train(model, adapt(model), scale=lambda _, loss: scaler.scale(loss))


def clipped_after_the_step():
    model = network()
    return train(model, adapt(model), after=lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0))


def remainder_dropped():
    model = network()
    optimizer = adapt(model)
    for _ in range(4):
        optimizer.zero_grad()
        for number, chosen in enumerate(batches(1)):
            (loss_of(model, chosen) / 3).backward()
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    return model


if __name__ == "__main__":
    main(globals())
