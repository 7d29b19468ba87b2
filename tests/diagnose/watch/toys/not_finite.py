"""Small trainings that end in NaN or inf, each by another cause; `not_finite.py NAME FILE` writes the final weights."""

from __future__ import annotations

import math

import torch
from frame import main
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

BAD = 3
"""The step at which the fault is, from 1."""

torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")


def batches(number=6):
    for step in range(1, number + 1):
        yield step, torch.randn(8, 4)


def step_on(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


class Divide(nn.Module):
    """Divides by the spread of a row, which is 0 where all of it is equal."""

    def forward(self, x):
        return (x - x.mean(1, keepdim=True)) / (x.amax(1, keepdim=True) - x.amin(1, keepdim=True))


class Net(nn.Module):
    def __init__(self, middle):
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.middle = middle
        self.last = nn.Linear(4, 1)

    def forward(self, x):
        return self.last(self.middle(self.first(x)))


def train(model, data, loss_of=lambda output: output.square().mean(), optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.01)
    for batch in data:
        step_on(optimizer, loss_of(model(batch)))
    return model


def with_zeros(rows=1):
    for step, x in batches():
        if step == BAD:
            x[:rows] = 0
        yield x


def constant_row_in_a_module():
    return train(Net(nn.Sequential(nn.Tanh(), Divide())), with_zeros(2))


def constant_row_in_double_precision():
    return train(Net(nn.Sequential(nn.Tanh(), Divide())).double(), (x.double() for x in with_zeros()))


class Checkpointed(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


def constant_row_in_a_checkpoint():
    return train(Net(Checkpointed(nn.Sequential(nn.Tanh(), Divide()))), with_zeros())


class Square(nn.Module):
    def forward(self, x):
        return x.square()


class Between(Net):
    """Takes the logarithm itself, without a module for it."""

    def forward(self, x):
        return self.last(self.middle(self.first(x)).log())


def logarithm_between_modules():
    return train(Between(Square()), with_zeros())


def batch_with_nan():
    data = torch.randn(48, 4)
    data[BAD * 8 - 4, 2] = math.nan
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=8)
    return train(Net(nn.ReLU()), (x for (x,) in loader))


def target_with_inf():
    data, target = torch.randn(48, 4), torch.randn(48, 1)
    target[BAD * 8 - 4] = math.inf
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data, target), batch_size=8)
    model = Net(nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for x, y in loader:
        step_on(optimizer, functional.mse_loss(model(x), y))
    return model


def logarithm_of_a_probability_of_zero():
    def loss_of(output):
        return -torch.log(torch.relu(output - output.min())).mean()

    return train(Net(nn.ReLU()), (x for _, x in batches()), loss_of)


def root_of_zero():
    def loss_of(output):
        return (output - output.detach()).square().sum(1).sqrt().mean() + output.square().mean()

    return train(Net(nn.ReLU()), (x for _, x in batches()), loss_of)


class Masked(nn.Module):
    """Chooses by `where` after the root of everything: the gradient of what is not chosen is 0 times NaN."""

    def forward(self, x):
        return torch.where(x > 0, x.sqrt(), torch.zeros_like(x))


def where_after_the_root():
    return train(Net(Masked()), (x for _, x in batches()))


def rate_too_large():
    model = Net(nn.Identity())
    return train(model, (x for _, x in batches(12)), optimizer=torch.optim.SGD(model.parameters(), 1e12))


def eps_of_zero_in_half_precision():
    model = nn.Linear(4, 2).half()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _, x in batches():
        x[:, 0] = 0  # the weights of a feature that is never there get no gradient
        step_on(optimizer, (model(x.half()).float() * 1e-2).square().mean())
    return model


def half_precision_overflows():
    model = Net(nn.ReLU())
    with torch.no_grad():
        model.last.weight.fill_(1e3)
    optimizer = torch.optim.SGD(model.parameters(), 1e-9)
    for step, x in batches():
        with torch.autocast("cpu", torch.float16):
            output = model(x * (1e4 if step == BAD else 1))
        step_on(optimizer, (output.float() * 1e-4).square().mean())
    return model


def weights_made_without_values():
    model = Net(nn.Linear(4, 4))
    with torch.no_grad():
        model.middle.weight[1, 2] = math.nan
    return train(model, (x for _, x in batches()))


def attention_without_any_key():
    layer = nn.MultiheadAttention(4, 1, batch_first=True)
    optimizer = torch.optim.SGD(layer.parameters(), 0.01)
    for step, x in batches():
        padding = torch.zeros(2, 4, dtype=torch.bool)
        padding[0, 1:] = True
        if step == BAD:
            padding[0] = True
        rows = x.view(2, 4, 4)
        output, _ = layer(rows, rows, rows, key_padding_mask=padding)
        step_on(optimizer, output.square().mean())
    return layer


def compiled_as_a_whole():
    model = Net(nn.Sequential(nn.Tanh(), Divide()))
    return train(torch.compile(model, backend="eager"), with_zeros())._orig_mod


def scale_falls_for_a_bad_gradient():
    model = Net(nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    scaler = torch.amp.GradScaler("cuda" if torch.cuda.is_available() else "cpu")
    for step, x in batches(20):
        difference = model(x) * (0 if step >= BAD else 1)
        loss = difference.square().sum(1).sqrt().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return model


if __name__ == "__main__":
    main(globals())
