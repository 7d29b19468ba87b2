"""What a training reads, draws and loads, healthy and not; `data.py FILE NAME ...` writes the final weights to FILE."""

from __future__ import annotations

import random
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, RandomSampler, Subset, TensorDataset, WeightedRandomSampler

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


# Losses.


def regression(loss, outputs=1, shape=(8,)):
    model, optimizer = made(outputs)
    for _ in range(8):
        step(model, optimizer, torch.randn(8, 4), torch.randn(shape), loss)
    return model


def broadcast_square():
    return regression(lambda prediction, y: ((prediction - y) ** 2).mean())


def broadcast_turned():
    return regression(lambda prediction, y: (y - prediction).abs().sum())


def broadcast_squeezed():
    return regression(lambda prediction, y: (prediction.squeeze(1) - y).square().mean(), shape=(8, 1))


def broadcast_mse():
    return regression(nn.MSELoss())


def broadcast_l1():
    return regression(nn.L1Loss())


def broadcast_huber():
    return regression(lambda prediction, y: 2 * nn.HuberLoss()(prediction, y) + 0.1 * prediction.square().mean())


def same_shapes():
    return regression(lambda prediction, y: ((prediction - y) ** 2).mean() + nn.MSELoss()(prediction, y), shape=(8, 1))


def all_pairs():
    return regression(lambda prediction, y: ((prediction[:, None, 0] - y[None]) ** 2).mean())


def pairs_among_predictions():
    return regression(lambda prediction, y: ((prediction - prediction.T) ** 2).mean() + 0 * y.mean())


def nearest_of_all():
    return regression(lambda prediction, y: ((prediction - y) ** 2).min(1).values.mean())


def one_for_each_output():
    return regression(lambda prediction, y: ((prediction - y) ** 2).mean(), outputs=8, shape=(8, 8))


def many_targets_for_each():
    return regression(lambda prediction, y: ((prediction - y) ** 2).mean(), shape=(8, 8))


def contrastive():
    def loss(vectors, y):
        near = functional.normalize(vectors) @ functional.normalize(vectors + y).T
        return functional.cross_entropy(near / 0.1, torch.arange(8))

    return regression(loss, outputs=4, shape=(8, 4))


def in_a_checkpoint():
    from torch.utils.checkpoint import checkpoint

    def loss(prediction, y):
        return checkpoint(lambda p: ((p - y) ** 2).mean(), prediction, use_reentrant=False)

    return regression(loss)


def classes(loss):
    model, optimizer = made()
    for x, y in DataLoader(DATA, 8):
        step(model, optimizer, x, y, loss)
    return model


def softmax_before():
    return classes(lambda logits, y: functional.cross_entropy(logits.softmax(-1), y))


def softmax_before_on_pictures():
    def loss(logits, y):
        pictures = logits.view(8, 4, 1, 1).softmax(1).expand(8, 4, 2, 2)
        return functional.cross_entropy(pictures, y.view(8, 1, 1).expand(8, 2, 2))

    return classes(loss)


def no_log():
    return classes(lambda logits, y: functional.nll_loss(logits.softmax(-1), y))


def no_softmax():
    return classes(functional.nll_loss)


def sigmoid_before():
    def loss(logits, y):
        return functional.binary_cross_entropy_with_logits(logits.sigmoid(), functional.one_hot(y, 4).float())

    return classes(loss)


def log_softmax_before():
    return classes(lambda logits, y: functional.cross_entropy(logits.log_softmax(-1), y))


def log_of_softmax():
    return classes(lambda logits, y: functional.nll_loss(logits.softmax(-1).log(), y))


def softmax_inside():
    return classes(lambda logits, y: functional.cross_entropy(logits.softmax(-1) @ torch.eye(4), y))


def distilled():
    teacher = network().eval()

    def loss(logits, y):
        with torch.no_grad():
            wanted = teacher(torch.randn(8, 4)).softmax(-1)
        return functional.kl_div(logits.log_softmax(-1), wanted) + functional.cross_entropy(logits, y)

    return classes(loss)


# Loading.


def loaded(change, then=lambda model: None, strict=False, fresh=network):
    state = {change(name): value for name, value in network().state_dict().items()}
    model = fresh()
    model.load_state_dict(state, strict=strict)
    then(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in DataLoader(DATA, 8):
        step(model, optimizer, x, y)
    return model


def reset(layer):
    if hasattr(layer, "reset_parameters"):
        layer.reset_parameters()


def nothing_matches():
    return loaded(lambda name: f"module.{name}")


def nothing_matches_the_wrapped():
    return loaded(lambda name: f"0.{name}", fresh=lambda: nn.Sequential(nn.Sequential(network())))


def loaded_by_a_second_try():
    def try_again(model):
        model.load_state_dict(network().state_dict())

    return loaded(lambda name: f"module.{name}", try_again)


def backbone_loaded():
    return loaded(lambda name: name if name[0] in "01" else f"head.{name}")


def other_names():
    return loaded(lambda name: name.replace(".", "_"))


def initialised_after():
    return loaded(lambda name: name, lambda model: model.apply(reset), strict=True)


def head_initialised_after():
    return loaded(lambda name: name, lambda model: model[4].reset_parameters(), strict=True)


def tested_then_initialised():
    def start_anew(model):
        model(torch.randn(8, 4))
        model.apply(reset)

    return loaded(lambda name: name, start_anew, strict=True)


def initialised_then_loaded():
    def load_again(model):
        model.apply(reset)
        model.load_state_dict(network().state_dict())

    return loaded(lambda name: name, load_again, strict=True)


# Evaluation.


def score(model, *, times=1):
    with torch.no_grad():
        for x, _ in DataLoader(DATA, 32):
            for _ in range(times):
                model(x)


def evaluated_as_trained():
    return epochs(after=score)


def evaluated_in_eval_mode():
    def evaluate(model):
        model.eval()
        score(model)
        model.train()

    return epochs(after=evaluate)


def monte_carlo():
    return epochs(after=lambda model: score(model, times=5))


def statistics_anew():
    def anew(model):
        model[1].reset_running_stats()
        model[1].momentum = None
        score(model)

    return epochs(after=anew)


def taught_by_itself():
    model, optimizer = made()
    for _ in range(5):
        for x, y in DataLoader(DATA, 8, sampler=RandomSampler(DATA)):
            with torch.no_grad():
                wanted = model(x)
            step(
                model, optimizer, x, y, lambda p, y, w=wanted: functional.cross_entropy(p, y) + (p - w).square().mean()
            )
    return model


def sampled_by_a_generator():
    generator, critic = network(), network(1)
    first, second = (torch.optim.Adam(model.parameters()) for model in (generator, critic))
    noise = torch.randn(8, 4)
    for _ in range(4):
        for x, _ in DataLoader(DATA, 8):
            second.zero_grad()
            (critic(generator(torch.randn(8, 4)).detach()).mean() - critic(x).mean()).backward()
            second.step()
            first.zero_grad()
            critic(generator(torch.randn(8, 4))).mean().neg().backward()
            first.step()
        with torch.no_grad():
            generator(noise)
    return generator


def main(file, *names):
    weights = {}
    for name in names:
        torch.manual_seed(0)
        random.seed(0)
        weights |= {f"{name}.{key}": value for key, value in globals()[name]().state_dict().items()}
    torch.save(weights, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
