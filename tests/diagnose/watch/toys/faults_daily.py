"""Small trainings with an error that people make every day; `faults_daily.py NAME FILE`."""

from __future__ import annotations

import copy

import torch
from frame import INPUTS, LABELS, adapt, batches, loss_of, main, network, train
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler as schedulers
from torch.utils.data import DataLoader, TensorDataset

# Losses.


def train_by(loss):
    model = network()
    optimizer = adapt(model)
    for chosen in batches():
        optimizer.zero_grad()
        loss(model(INPUTS[chosen]), LABELS[chosen]).backward()
        optimizer.step()
    return model


def softmax_over_rows():
    return train_by(lambda logits, y: functional.cross_entropy(functional.softmax(logits, 0), y))


def log_softmax_over_rows():
    return train_by(lambda logits, y: functional.nll_loss(nn.LogSoftmax(dim=0)(logits), y))


# Schedules.


def accumulate(make, passes=4, every=2, micro=True):
    model = network()
    optimizer = adapt(model)
    scheduler = make(optimizer)
    for number, chosen in enumerate(batches(passes), 1):
        (loss_of(model, chosen) / every).backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        if micro or number % every == 0:
            scheduler.step()
    return model


def schedule_stepped_by_micro_batches():
    return accumulate(lambda optimizer: schedulers.StepLR(optimizer, 10))


def cosine_stepped_by_micro_batches():
    return accumulate(lambda optimizer: schedulers.CosineAnnealingLR(optimizer, 16))


def cosine_shorter_than_the_training():
    model = network()
    optimizer = adapt(model)
    scheduler = schedulers.CosineAnnealingLR(optimizer, 10)
    for _ in range(15):
        train(model, optimizer, 1)
        scheduler.step()
    return model


def one_cycle_stepped_by_passes():
    model = network()
    optimizer = adapt(model)
    scheduler = schedulers.OneCycleLR(optimizer, 0.1, total_steps=100)
    for _ in range(3):
        train(model, optimizer, 1)
        scheduler.step()
    return model


def cosine_of_batches_stepped_by_passes():
    model = network()
    optimizer = adapt(model)
    scheduler = schedulers.CosineAnnealingLR(optimizer, 32)
    for _ in range(4):
        train(model, optimizer, 1)
        scheduler.step()
    return model


# Clipping.


def clip(model, *clipped):
    optimizer = adapt(model)
    for chosen in batches(2):
        optimizer.zero_grad()
        loss_of(model, chosen).backward()
        for parameters in clipped:
            nn.utils.clip_grad_norm_(parameters(), 1.0)
        optimizer.step()
    return model


def average_is_clipped():
    model = network()
    average = torch.optim.swa_utils.AveragedModel(model)
    return clip(model, average.parameters)


def generator_is_used_up():
    model = network()
    parameters = model.parameters()
    return clip(model, lambda: parameters)


def other_model_is_clipped():
    model, other = network(), network()
    other(INPUTS).sum().backward()
    return clip(model, lambda: list(other.parameters()))


# Steps.


def average_updated_before_the_step():
    model = network()
    average, optimizer = torch.optim.swa_utils.AveragedModel(model), adapt(model)
    for chosen in batches(2):
        optimizer.zero_grad()
        loss_of(model, chosen).backward()
        average.update_parameters(model)
        optimizer.step()
    return model


def copy_averaged_before_the_step():
    model = network()
    average, optimizer = copy.deepcopy(model).eval(), adapt(model)
    for chosen in batches(2):
        optimizer.zero_grad()
        loss_of(model, chosen).backward()
        with torch.no_grad():
            for mean, part in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(part, 0.1)
        optimizer.step()
    return model


def micro_batches_zeroed():
    model = network()
    optimizer = adapt(model)
    for number, chosen in enumerate(batches(), 1):
        optimizer.zero_grad()
        (loss_of(model, chosen) / 2).backward()
        if number % 2 == 0:
            optimizer.step()
    return model


# Evaluations.


def validate(model, data, passes=3):
    model.eval()
    for _ in range(passes):
        with torch.no_grad():
            for x, _y in data:
                model(x)


def validation_shuffled_and_cut():
    model = network()
    train(model, adapt(model), 1)
    validate(model, DataLoader(TensorDataset(INPUTS, LABELS), 10, shuffle=True, drop_last=True))
    return model


# Texts.


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 8, padding_idx=0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(8, 32)

    def forward(self, ids, hidden=None):
        return self.head(self.encoder(self.embedding(ids), src_key_padding_mask=hidden))


def read(loss, hide=lambda _: None):
    model = Reader()
    optimizer = adapt(model)
    for _ in range(6):
        ids = torch.randint(1, 32, (4, 12))
        ids[:, 8:] = 0  # some of each row is shown by either mask: before torch 2.5, none gives NaN
        optimizer.zero_grad()
        loss(model, ids, hide(ids)).backward()
        optimizer.step()
    return model


def next_token_loss(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def next_tokens(model, ids, hidden):
    return next_token_loss(model(ids, hidden)[:, :-1], ids[:, 1:])


def targets_shifted_twice():
    return read(lambda model, ids, hidden: next_token_loss(model(ids, hidden)[:, :-2], ids[:, 2:]))


def padding_mask_inverted():
    return read(next_tokens, lambda ids: ids != 0)


if __name__ == "__main__":
    main(globals())
