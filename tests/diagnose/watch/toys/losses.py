"""Small trainings on one process that compare, load and evaluate; `losses.py FILE NAME [NAME ...]`."""

from __future__ import annotations

import sys

import torch
from data import DATA, epochs, made, main, network, step
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, RandomSampler

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


def softmax_before_the_third_of_three():
    model, optimizer = made()
    for x, y in DataLoader(torch.utils.data.ConcatDataset([DATA, DATA]), 8):
        step(model, optimizer, x, y)
        step(model, optimizer, x, y, lambda logits, y: logits.square().mean())
        step(model, optimizer, x, y, lambda logits, y: functional.cross_entropy(logits.softmax(-1), y))
    return model


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


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
