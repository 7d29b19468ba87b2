"""Healthy neighbours of the faults in saved, restored and scheduled state; `neighbours_kept.py NAME FILE`."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import torch
from frame import INPUTS, adapt, batches, loader, loss_of, main, network, train, train_on
from torch.optim import lr_scheduler, swa_utils


def one_for_each_task():
    model = network()
    for _ in range(4):
        train_on(loader(), model, torch.optim.Adam(model.parameters(), 0.01))
    return model


def one_for_each_phase():
    model, data = network(), loader()
    for number in range(4):
        train_on(data, model, torch.optim.Adam(model.parameters(), 0.01 * 0.5**number))
    return model


def one_for_several_passes():
    model, data = network(), loader()
    for _ in range(4):
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(2):
            train_on(data, model, optimizer)
    return model


def federated():
    model, clients, data = network(), [network(), network()], loader()
    for _ in range(4):
        for client in clients:
            client.load_state_dict(model.state_dict())
            train_on(data, client, torch.optim.Adam(client.parameters(), 0.01))
        with torch.no_grad():
            for part, one, other in zip(model.parameters(), *(c.parameters() for c in clients), strict=True):
                part.copy_((one + other) / 2)
    return model


def optimizer_without_a_state():
    model, data = network(), loader()
    for _ in range(4):
        train_on(data, model, torch.optim.SGD(model.parameters(), 0.01))
    return model


def optimizer_loaded_each_time():
    model, data, state = network(), loader(), None
    for _ in range(4):
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        if state is not None:
            optimizer.load_state_dict(state)
        train_on(data, model, optimizer)
        state = copy.deepcopy(optimizer.state_dict())
    return model


def averaged():
    model = network()
    average = swa_utils.AveragedModel(model)
    train(model, adapt(model), after=lambda: average.update_parameters(model))
    swa_utils.update_bn([INPUTS], average)
    return model


def average_held_at_the_beginning():
    model = network()
    average = swa_utils.AveragedModel(model)
    optimizer = adapt(model)
    for _ in range(3):
        train(model, optimizer, 1)
        average.update_parameters(model)
        average.n_averaged.fill_(0)  # as torchvision's references do until the warm-up is over
        with torch.no_grad():
            average.eval()(INPUTS)
    return model


def average_loaded():
    model = network()
    old = swa_utils.AveragedModel(model)
    old.update_parameters(model)
    average = swa_utils.AveragedModel(model)
    average.load_state_dict(old.state_dict())
    train(model, adapt(model))
    average.eval()(INPUTS)
    return model


def average_resumed():
    model = network()
    optimizer, average = adapt(model), swa_utils.AveragedModel(model)
    train(model, optimizer, 1, after=lambda: average.update_parameters(model))
    again = network()
    continued, loaded = adapt(again), swa_utils.AveragedModel(again)
    again.load_state_dict(model.state_dict())
    continued.load_state_dict(optimizer.state_dict())
    loaded.load_state_dict(average.state_dict())
    return train(again, continued, after=lambda: loaded.update_parameters(again))


def average_begun_after_a_resume():
    model = network()
    optimizer = adapt(model)
    train(model, optimizer, 1)
    continued, average = adapt(model), swa_utils.AveragedModel(model)
    continued.load_state_dict(optimizer.state_dict())
    train(model, continued, 3)
    return train(model, continued, 1, after=lambda: average.update_parameters(model))


def average_begun_late():
    model, data = network(), loader()
    optimizer, average = adapt(model), swa_utils.AveragedModel(model)
    scheduler, late = lr_scheduler.CosineAnnealingLR(optimizer, 100), swa_utils.SWALR(optimizer, 0.05)
    for number in range(6):
        train_on(data, model, optimizer)
        if number == 5:
            average.update_parameters(model)
            late.step()
        else:
            scheduler.step()
    return model


def average_through_its_state():
    model, average = network(), network()
    state = average.state_dict()

    def update():
        with torch.no_grad():
            for name, value in model.state_dict().items():
                if value.is_floating_point():
                    state[name].mul_(0.9).add_(value, alpha=0.1)

    return train(model, adapt(model), after=update)


def weights_clipped_beside_a_kept_state():
    model = network()
    shapes = model.state_dict()

    def clip():
        with torch.no_grad():
            for part in model.parameters():
                part.clamp_(-0.1, 0.1)

    train(model, adapt(model), after=clip)
    assert len(shapes) == 9
    return model


def live_state_saved_often():
    model = network()
    optimizer = adapt(model)
    live = {"model": model.state_dict(), "step": 0}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            train(model, optimizer, 1)
            torch.save(live, Path(folder, "last.pt"))
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, Path(folder, "all.pt"))
    return model


def best_saved_as_a_copy():
    model = network()
    optimizer = adapt(model)
    train(model, optimizer, 1)
    best = copy.deepcopy(model.state_dict())
    train(model, optimizer, 1)
    with tempfile.TemporaryDirectory() as folder:
        torch.save({"model": best}, Path(folder, "best.pt"))
    return model


def resumed_with(change):
    model = network()
    optimizer = adapt(model)
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for _ in range(4):
        train(model, optimizer, 1)
        scheduler.step()
    states = copy.deepcopy([optimizer.state_dict(), scheduler.state_dict()])
    optimizer = adapt(model)
    optimizer.load_state_dict(states[0])
    scheduler = change(optimizer, states[1])
    for _ in range(3):
        train(model, optimizer, 1)
        scheduler.step()
    return model


def cosine_loaded():
    def load(optimizer, state):
        scheduler = lr_scheduler.CosineAnnealingLR(optimizer, 10)
        scheduler.load_state_dict(state)
        return scheduler

    return resumed_with(load)


def cosine_at_its_epoch():
    return resumed_with(lambda optimizer, _: lr_scheduler.CosineAnnealingLR(optimizer, 10, last_epoch=3))


def cosine_at_a_new_rate():
    def begin(optimizer, _):
        for group in optimizer.param_groups:
            group["lr"] = 0.05
        return lr_scheduler.CosineAnnealingLR(optimizer, 10)

    return resumed_with(begin)


def schedules_of_all_kinds():
    model, data = network(), loader()
    makers = (
        lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2),
        lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 48),
        lambda optimizer: lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, 2),
    )
    for make in makers:
        optimizer = adapt(model)
        scheduler = make(optimizer)
        for _ in range(4):
            train_on(data, model, optimizer, after=scheduler.step)
    return model


def schedule_by_passes():
    model, data = network(), loader()
    optimizer = adapt(model)
    scheduler, plateau = lr_scheduler.CosineAnnealingLR(optimizer, 2), lr_scheduler.ReduceLROnPlateau(optimizer)
    for _ in range(5):
        train_on(data, model, optimizer)
        scheduler.step()
    assert plateau.last_epoch == 0
    return model


def schedule_of_a_run_cut_short():
    model = network()
    optimizer = adapt(model)
    scheduler = lr_scheduler.StepLR(optimizer, 10)
    train_on(loader(), model, optimizer)
    assert scheduler.last_epoch == 0
    return model


def validated_between():
    model, data, held_out = network(), loader(), loader()
    optimizer = adapt(model)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    for chosen in batches(1):
        optimizer.zero_grad()
        loss_of(model, chosen).backward()
        optimizer.step()
    for _ in range(4):
        with torch.no_grad():
            for x, _ in held_out:
                model(x)
    train_on(data, model, optimizer)
    scheduler.step()
    return model


if __name__ == "__main__":
    main(globals())
