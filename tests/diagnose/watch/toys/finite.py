"""Small trainings with values that are not finite and reach no step: masks, skipped steps, missing labels."""

from __future__ import annotations

import math

import torch
from frame import main
from not_finite import BAD, Between, Net, batches, step_on, train
from torch import nn
from torch.nn import functional


class CausalMask(nn.Module):
    """A module whose output is -inf on purpose."""

    def forward(self, x):
        size = x.shape[1]
        return torch.full((size, size), -math.inf).triu(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask, self.query, self.key = CausalMask(), nn.Linear(4, 4), nn.Linear(4, 4)
        self.softmax = nn.Softmax(-1)

    def forward(self, x):
        x = x.view(2, 4, 4)
        scores = self.query(x) @ self.key(x).transpose(1, 2) + self.mask(x)
        return self.softmax(scores) @ x


def causal_mask():
    return train(Attention(), (x for _, x in batches()))


class Masking(nn.Module):
    """Gives scores with a gradient, of which one in four is -inf."""

    def forward(self, x):
        return x.masked_fill(torch.tensor([False, False, False, True]), -math.inf)


def actions_that_are_not_allowed():
    def loss_of(output):
        choice = torch.distributions.Categorical(logits=output)
        return -choice.log_prob(torch.zeros(len(output), dtype=torch.long)).mean()

    model = nn.Sequential(nn.Linear(4, 4), Masking())
    return train(model, (x for _, x in batches()), loss_of)


class Neighbours(nn.Module):
    """Gives the distances of all pairs, inf for each with itself."""

    def forward(self, x):
        distances = (x[:, None] - x[None]).square().sum(-1)
        return distances.masked_fill(torch.eye(len(x), dtype=torch.bool), math.inf)


def nearest_neighbour():
    model = nn.Sequential(nn.Linear(4, 4), Neighbours())
    return train(model, (x for _, x in batches()), lambda distances: distances.amin(1).mean())


class Best(nn.Module):
    """Keeps the best loss so far, which is inf at first."""

    def __init__(self):
        super().__init__()
        self.register_buffer("best", torch.tensor(math.inf))

    def forward(self, loss):
        before = self.best.clone()
        self.best = torch.minimum(self.best, loss)
        return before


def best_loss_of_inf():
    model, best = Net(nn.ReLU()), Best()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _, x in batches():
        loss = model(x).square().mean()
        best(loss.detach())
        step_on(optimizer, loss)
    return model


def missing_labels():
    model = Net(nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    target = torch.randn(48, 1)
    target[::3] = math.nan
    data = torch.utils.data.TensorDataset(torch.randn(48, 4), target)
    for x, y in torch.utils.data.DataLoader(data, batch_size=8):
        step_on(optimizer, (model(x) - torch.nan_to_num(y)).square()[y.isfinite()].mean())
    return model


class Entropy(nn.Module):
    """A quantity for the log, of probabilities that may be 0."""

    def forward(self, logits):
        p = torch.relu(logits)
        return (p * p.log()).sum()


def metric_of_nan():
    model, entropy = Net(nn.ReLU()), Entropy()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _, x in batches():
        output = model(x)
        with torch.no_grad():
            entropy(output)
        step_on(optimizer, output.square().mean())
    return model


def skipped_by_the_program():
    model = Net(nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for step, x in batches():
        loss = model(x * (math.nan if step == BAD else 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).isfinite():
            optimizer.step()
    return model


def scale_is_found():
    model = Net(nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scaler = torch.amp.GradScaler(device, init_scale=2.0**32, growth_interval=2)
    for _, x in batches(24):
        with torch.autocast(device, torch.float16):
            loss = functional.mse_loss(model(x * 10).float(), torch.ones(8, 1))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return model


def evaluated_on_nan():
    model = Net(nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _, x in batches():
        step_on(optimizer, model(x).square().mean())
        with torch.no_grad():
            model.eval()(x.log())
        model.train()
    return model


def logarithm_of_what_is_positive():
    return train(Between(nn.Softplus()), (x for _, x in batches()))


def gradient_of_each_sample():
    model = Net(nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    weights = dict(model.named_parameters())

    def loss_of(values, x):
        return torch.func.functional_call(model, values, (x[None],)).square().mean()

    for _, x in batches():
        found = torch.func.vmap(torch.func.grad(loss_of), (None, 0))({n: w.detach() for n, w in weights.items()}, x)
        step_on(optimizer, model(x).square().mean() + sum(tensor.square().mean() for tensor in found.values()))
    return model


def compiled():
    model = Net(nn.ReLU())
    train(torch.compile(model, backend="eager", fullgraph=True), (x for _, x in batches()))
    return model


if __name__ == "__main__":
    main(globals())
