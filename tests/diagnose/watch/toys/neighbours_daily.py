"""Healthy neighbours of the errors that people make every day; `neighbours_daily.py NAME FILE`."""

from __future__ import annotations

import copy

import torch
from faults_daily import next_token_loss, next_tokens, read, validate
from frame import INPUTS, LABELS, adapt, batches, loss_of, main, network, train
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler as schedulers
from torch.utils.data import DataLoader, TensorDataset

# Losses.


def contrastive_loss_over_rows_and_columns():
    model = network()
    optimizer = adapt(model)
    for chosen in batches():
        optimizer.zero_grad()
        similar = model(INPUTS[chosen]) @ model(INPUTS[chosen]).T
        both = functional.log_softmax(similar, 0), functional.log_softmax(similar, 1)
        sum(functional.nll_loss(part, torch.arange(8)) for part in both).backward()
        optimizer.step()
    return model


# Schedules.


def accumulated_schedule_in_micro_batches():
    model = network()
    optimizer = adapt(model)
    scheduler = schedulers.CosineAnnealingLR(optimizer, 32)
    for number, chosen in enumerate(batches(), 1):
        (loss_of(model, chosen) / 2).backward()
        if number % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()
    return model


def schedules_of_each_kind_to_their_end():
    model = network()
    optimizer = adapt(model)
    for make in (
        lambda: schedulers.OneCycleLR(optimizer, 0.1, total_steps=32),
        lambda: schedulers.CosineAnnealingLR(optimizer, 32),
        lambda: schedulers.CosineAnnealingLR(optimizer, 4),  # on purpose: four periods
        lambda: schedulers.LinearLR(optimizer, 0.1, 1.0, 5),
        lambda: schedulers.PolynomialLR(optimizer, 32),
    ):
        train(model, optimizer, 4, after=make().step)
    return model


def schedules_of_passes_stopped_early():
    model = network()
    optimizer = adapt(model)
    scheduler = schedulers.CosineAnnealingLR(optimizer, 100)
    for _ in range(3):
        train(model, optimizer, 1)
        scheduler.step()
    return model


def one_cycle_cut_short():
    model = network()
    optimizer = adapt(model)
    return train(model, optimizer, 1, after=schedulers.OneCycleLR(optimizer, 0.1, total_steps=100).step)


# Clipping.


def parts_clipped_and_two_optimizers():
    model = network()
    first, last = adapt(model[0]), adapt(model[4])
    for chosen in batches(2):
        model.zero_grad()
        loss_of(model, chosen).backward()
        nn.utils.clip_grad_norm_(model[0].parameters(), 1.0)
        nn.utils.clip_grad_value_(iter(model[4].parameters()), 1.0)
        first.step()
        last.step()
    return model


def copies_of_weights_stepped():
    model = network()
    copies = [part.detach().clone().requires_grad_() for part in model.parameters()]
    optimizer = torch.optim.SGD(copies, 0.1)
    for chosen in batches(2):
        model.zero_grad()
        loss_of(model, chosen).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for own, part in zip(copies, model.parameters(), strict=True):
            own.grad = part.grad.clone()
        optimizer.step()
        with torch.no_grad():
            for own, part in zip(copies, model.parameters(), strict=True):
                part.copy_(own)
    return model


# Steps.


def averages_updated_after_the_step():
    model = network()
    averages, optimizer = [torch.optim.swa_utils.AveragedModel(model), copy.deepcopy(model).eval()], adapt(model)
    for chosen in batches(2):
        optimizer.zero_grad()
        loss_of(model, chosen).backward()
        optimizer.step()
        averages[0].update_parameters(model)
        with torch.no_grad():
            for mean, part in zip(averages[1].parameters(), model.parameters(), strict=True):
                mean.lerp_(part, 0.1)
    return model


def micro_batches_of_half_a_loss():
    model = network()
    optimizer = adapt(model)
    for number, chosen in enumerate(batches(), 1):
        (loss_of(model, chosen) / 2).backward()
        if number % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
    return model


# Evaluations.


def validations_without_a_remainder_or_a_shuffle():
    model, data = network(), TensorDataset(INPUTS, LABELS)
    train(model, adapt(model), 1)
    validate(model, DataLoader(data, 8, shuffle=True, drop_last=True))
    validate(model, DataLoader(data, 10, drop_last=True))
    validate(model, DataLoader(data, 10, shuffle=True))
    return model


def statistics_estimated_on_training_data():
    model, data = network(), TensorDataset(INPUTS, LABELS)
    train(model, adapt(model), 1)
    for _ in range(3):
        torch.optim.swa_utils.update_bn(DataLoader(data, 10, shuffle=True, drop_last=True), model)
    return model


# Texts.


def texts_with_padding():
    return read(next_tokens, lambda ids: ids == 0)


def several_next_tokens():
    def loss(model, ids, hidden):
        logits = model(ids, hidden)
        return next_token_loss(logits[:, :-2], ids[:, 2:]) + next_token_loss(logits[:, :-1], ids[:, 1:])

    return read(loss)


def token_itself():
    return read(lambda model, ids, hidden: next_token_loss(model(ids, hidden), ids))


if __name__ == "__main__":
    main(globals())
