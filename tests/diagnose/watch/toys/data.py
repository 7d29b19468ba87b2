"""What a training reads, draws and loads, healthy and not; `data.py FILE NAME ...` writes the final weights to FILE."""

from __future__ import annotations

import random
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

DATA = TensorDataset(torch.arange(256.0).view(64, 4) / 256, torch.arange(64) % 4)


def network(outputs=4):
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, outputs))


def made(outputs=4):
    model = network(outputs)
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def step(model, optimizer, x, y, loss=functional.cross_entropy):
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()


def epochs(number=4, *, before=lambda epoch: None, loader=None, after=lambda model: None, outputs=4):
    """Train for some epochs; `before`, `loader` and `after` belong to each."""
    model, optimizer = made(outputs)
    fixed = DataLoader(DATA, 8, shuffle=True)
    for epoch in range(number):
        before(epoch)
        for x, y in fixed if loader is None else loader():
            step(model, optimizer, x, y)
        after(model)
    return model


# The same order, the same draws.


def seeded_in_each_epoch():
    return epochs(before=lambda _: torch.manual_seed(0))


def seeded_by_hand_in_each_epoch():
    model, optimizer = made()
    x, y = DATA.tensors
    for _ in range(4):
        torch.manual_seed(0)
        for j in torch.randperm(64).split(8):
            step(model, optimizer, x[j], y[j])
    return model


def generator_in_each_epoch():
    return epochs(loader=lambda: DataLoader(DATA, 8, shuffle=True, generator=torch.Generator().manual_seed(0)))


def weighted_the_same():
    def loader():
        return DataLoader(DATA, 8, sampler=WeightedRandomSampler(torch.ones(64), 64, generator=generator()))

    def generator():
        return torch.Generator().manual_seed(3)

    return epochs(loader=loader)


def generator_made_once():
    loader = DataLoader(DATA, 8, shuffle=True, generator=torch.Generator().manual_seed(0))
    return epochs(loader=lambda: loader)


def seeded_by_the_epoch():
    return epochs(before=torch.manual_seed)


def always_in_order():
    return epochs(loader=lambda: DataLoader(DATA, 8))


def validated_in_one_random_order():
    def validate(model):
        model.eval()
        with torch.no_grad():
            for x, _ in DataLoader(DATA, 8, shuffle=True, generator=torch.Generator().manual_seed(0)):
                model(x)
        model.train()

    return epochs(after=validate)


def sampled_with_one_seed():
    def sample(model):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            torch.randn(4)

    return epochs(after=sample)


def one_batch_on_purpose():
    model, optimizer = made()
    x, y = next(iter(DataLoader(DATA, 8, shuffle=True)))
    for _ in range(20):
        step(model, optimizer, x, y)
    return model


def made_anew_in_each_step():
    model, optimizer = made()
    for _ in range(12):
        torch.manual_seed(0)
        step(model, optimizer, torch.randn(8, 4), torch.randint(4, (8,)))
    return model


def two_loaders_side_by_side():
    model, optimizer = made()
    loaders = [DataLoader(DATA, 8, shuffle=True, generator=torch.Generator().manual_seed(0)) for _ in range(2)]
    for _ in range(3):
        for (x, _), (_, y) in zip(*loaders, strict=True):
            step(model, optimizer, x, y)
    return model


def folds_with_one_seed():
    for fold in range(4):
        torch.manual_seed(0)
        part = Subset(DATA, [place for place in range(64) if place % 4 != fold])
        loader = DataLoader(part, 8, shuffle=True)
        model = epochs(2, loader=lambda loader=loader: loader)
    return model


def rate_searched_with_the_same_seed():
    model, optimizer = made()
    start = [{name: value.clone() for name, value in model.state_dict().items()}, optimizer.state_dict()]
    for _ in range(2):
        torch.manual_seed(0)
        for x, y in DataLoader(DATA, 8, shuffle=True):
            step(model, optimizer, x, y)
        model.load_state_dict(start[0])
        optimizer.load_state_dict(start[1])
    return model


# Workers.


class Noisy(Dataset):
    def __init__(self, draw):
        self.draw = draw

    def __len__(self):
        return 64

    def __getitem__(self, place):
        x, y = DATA[place]
        return x + self.draw(place), y


def in_workers(draw, seed):
    loader = DataLoader(Noisy(draw), 8, shuffle=True, num_workers=2, worker_init_fn=seed)
    return epochs(2, loader=lambda: loader)


def python_draws(_=None):
    return random.random()


def workers_with_one_seed():
    return in_workers(python_draws, lambda _: random.seed(0))


def workers_with_one_torch_seed():
    return in_workers(lambda _: torch.rand(()), lambda _: torch.manual_seed(7))


def workers_with_seeds_of_their_own():
    return in_workers(python_draws, random.seed)


def workers_that_torch_seeds():
    return in_workers(python_draws, None)


def workers_that_draw_nothing():
    return in_workers(lambda _: 0, lambda _: random.seed(0))


def workers_with_a_seed_for_each_sample():
    def draw(place):
        random.seed(place)
        return random.random()

    return in_workers(draw, lambda _: random.seed(0))


def validated_by_workers_with_one_seed():
    def validate(model):
        model.eval()
        with torch.no_grad():
            for x, _ in DataLoader(Noisy(python_draws), 8, num_workers=2, worker_init_fn=lambda _: random.seed(0)):
                model(x)
        model.train()

    return epochs(2, after=validate)


# Missing values, which are NaN.


class Stream(IterableDataset):
    """Rows with a missing value; each worker reads all of them, or its own share."""

    def __init__(self, *, is_shared):
        self.is_shared = is_shared

    def __iter__(self):
        info = get_worker_info()
        x, y = DATA.tensors
        first, step = (info.id, info.num_workers) if self.is_shared else (0, 1)
        for place in range(first, 64, step):
            row = x[place].clone()
            row[0] = float("nan")
            yield row, y[place]


def read_by_workers(stream):
    loader = DataLoader(stream, 8, num_workers=2)
    model, optimizer = made()
    for x, y in loader:
        step(model, optimizer, x.nan_to_num(), y)
    return model


def missing_values_read_by_each_worker():
    return read_by_workers(Stream(is_shared=False))


def missing_values_shared_by_workers():
    return read_by_workers(Stream(is_shared=True))


def main(trainings, file, *names):
    """Run trainings of a file, one after another from one seed each; keep the weights they end with."""
    weights = {}
    for name in names:
        torch.manual_seed(0)
        random.seed(0)
        weights |= {f"{name}.{key}": value for key, value in trainings[name]().state_dict().items()}
    torch.save(weights, file)


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
