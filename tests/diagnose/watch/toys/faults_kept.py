"""Small trainings with a silent fault in what is kept, restored and scheduled; `faults_kept.py NAME FILE`."""

from __future__ import annotations

import copy
import math
import tempfile
from pathlib import Path

import torch
from frame import INPUTS, adapt, loader, loss_of, main, network, train, train_on


def made_for_each_pass():
    model, data = network(), loader()
    for _ in range(4):
        train_on(data, model, torch.optim.Adam(model.parameters(), 0.01))
    return model


def average_stands_still():
    model = network()
    average = torch.optim.swa_utils.AveragedModel(model)
    train(model, adapt(model))
    with torch.no_grad():
        average.eval()(INPUTS)
    return model


def resume_with_an_average(model):
    """Return a network and an optimizer of a training that goes on, its average before, and a new one."""
    optimizer, average = adapt(model), torch.optim.swa_utils.AveragedModel(model)
    train(model, optimizer, 1, after=lambda: average.update_parameters(model))
    again = network()
    continued = adapt(again)
    again.load_state_dict(model.state_dict())
    continued.load_state_dict(optimizer.state_dict())
    return again, continued, average, torch.optim.swa_utils.AveragedModel(again)


def average_begun_anew():
    model, optimizer, _, average = resume_with_an_average(network())
    return train(model, optimizer, after=lambda: average.update_parameters(model))


def average_loaded_without_its_count():
    model, optimizer, before, average = resume_with_an_average(network())
    average.module.load_state_dict(before.module.state_dict())
    return train(model, optimizer, after=lambda: average.update_parameters(model))


def average_in_the_weights():
    model = network()
    average = dict(model.state_dict())

    def update():
        with torch.no_grad():
            for name, value in model.named_parameters():
                average[name].mul_(0.9).add_(value, alpha=0.1)

    return train(model, adapt(model), after=update)


def best_saved_as_an_alias():
    model = network()
    optimizer, best, least = adapt(model), None, math.inf
    for _ in range(2):
        train(model, optimizer, 1)
        loss = float(loss_of(model, torch.arange(64)))
        if loss < least:
            best, least = model.state_dict(), loss
    train(model, optimizer, 1)
    with tempfile.TemporaryDirectory() as folder:
        torch.save({"model": best}, Path(folder, "best.pt"))
    return model


def resumed(make, made_first):
    model = network()
    optimizer = adapt(model)
    scheduler = make(optimizer)
    for _ in range(4):
        train(model, optimizer, 1, after=None)
        scheduler.step()
    state = copy.deepcopy(optimizer.state_dict())
    optimizer = adapt(model)
    scheduler = make(optimizer) if made_first else None
    optimizer.load_state_dict(state)
    scheduler = make(optimizer) if scheduler is None else scheduler
    for _ in range(3):
        train(model, optimizer, 1)
        scheduler.step()
    return model


def cosine(optimizer):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)


def steps_of_three(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, 3)


def one_after_the_other(optimizer):
    rates = torch.optim.lr_scheduler
    return rates.SequentialLR(optimizer, [rates.LinearLR(optimizer, 0.1, 1.0, 2), cosine(optimizer)], [2])


def cosine_resumed():
    return resumed(cosine, made_first=True)


def new_cosine_on_a_loaded_optimizer():
    return resumed(cosine, made_first=False)


def steps_resumed():
    return resumed(steps_of_three, made_first=True)


def sequence_resumed():
    return resumed(one_after_the_other, made_first=True)


def schedule_forgotten():
    model, data = network(), loader()
    optimizer = adapt(model)
    scheduler = cosine(optimizer)
    for _ in range(4):
        train_on(data, model, optimizer)
    assert scheduler.last_epoch == 0
    return model


def schedule_of_passes_stepped_by_batches():
    model, data = network(), loader()
    optimizer = adapt(model)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    for _ in range(4):
        train_on(data, model, optimizer, after=scheduler.step)
    return model


if __name__ == "__main__":
    main(globals())
