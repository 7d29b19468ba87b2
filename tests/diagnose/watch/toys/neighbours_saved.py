"""Healthy neighbours of the faults in averages, checkpoints and resumes; `neighbours_saved.py NAME FILE`."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import torch
from faults_saved import in_groups
from frame import adapt, main
from saved_parts import Positioned, ScheduleFree, plain_network, train_by, train_in
from torch.optim.swa_utils import AveragedModel


def averaged(share, dtype):
    model = plain_network().bfloat16()
    average = AveragedModel(model, avg_fn=lambda mean, value, _: mean + (value - mean) * share).to(dtype)
    return train_in(torch.bfloat16, model, adapt(model), after=lambda: average.update_parameters(model))


def average_in_float32():
    return averaged(1e-4, torch.float32)


def average_of_the_last_in_bfloat16():
    return averaged(0.5, torch.bfloat16)


def average_of_a_frozen_part():
    model = plain_network().bfloat16()
    model[0].requires_grad_(False)
    average = AveragedModel(model[0])
    optimizer = adapt(model[2])
    return train_in(torch.bfloat16, model, optimizer, after=lambda: average.update_parameters(model[0]))


def average_of_frozen_layers_first():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), *(torch.nn.Linear(16, 16) for _ in range(4)))
    model = model.bfloat16()
    model[:3].requires_grad_(False)
    average = AveragedModel(model, avg_fn=lambda mean, value, _: mean + (value - mean) * 0.5)
    return train_in(torch.bfloat16, model, adapt(model[3:]), after=lambda: average.update_parameters(model))


def teacher_loaded_in_each_step():
    model = plain_network().bfloat16()
    teacher = copy.deepcopy(model).eval()
    state = copy.deepcopy(teacher.state_dict())
    return train_in(torch.bfloat16, model, adapt(model), after=lambda: teacher.load_state_dict(state))


def reference_moved_between_steps():
    model = plain_network().bfloat16()
    reference = copy.deepcopy(model).eval()

    def move():
        for weight in reference.parameters():
            weight.data = weight.data.clone()

    return train_in(torch.bfloat16, model, adapt(model), after=move)


def regrouped(before, after, change=None, **given):
    from torch.distributed.checkpoint import state_dict

    model, options = plain_network(), state_dict.StateDictOptions(**given)
    optimizer = in_groups(model, *before)
    train_in(torch.float32, model, optimizer, 2)
    state = state_dict.get_optimizer_state_dict(model, optimizer, options=options)
    optimizer.zero_grad()
    optimizer = in_groups(model, *after)
    state_dict.set_optimizer_state_dict(model, optimizer, optim_state_dict=state, options=options)
    if change is not None:
        change(optimizer)
    return train_in(torch.float32, model, optimizer, 2)


FAST, SLOW = {"lr": 0.01, "weight_decay": 0.0}, {"lr": 0.001, "weight_decay": 0.1}


def groups_kept():
    return regrouped([FAST, SLOW], [FAST, SLOW])


def groups_kept_and_flat():
    return regrouped([FAST, SLOW], [FAST, SLOW], flatten_optimizer_state_dict=True)


def groups_joined_that_were_alike():
    return regrouped([FAST, FAST], [FAST])


def groups_joined_and_set():
    return regrouped([FAST, {**FAST, "lr": 0.1}], [FAST], lambda optimizer: optimizer.param_groups[0].update(lr=0.002))


def rates_of_a_new_program():
    return regrouped([FAST, SLOW], [{"lr": 0.3}, {"lr": 0.5}])


def frozen_after_a_load():
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model = plain_network()
    optimizer = in_groups(model, FAST)
    train_in(torch.float32, model, optimizer, 2)
    weights, state = get_state_dict(model, optimizer)
    optimizer.zero_grad()
    model[0].requires_grad_(False)
    optimizer = in_groups(model, FAST)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    return train_in(torch.float32, model, optimizer, 2)


def schedule_free(save, ready=8):
    model = plain_network()
    optimizer = ScheduleFree(model.parameters())
    optimizer.train()
    train_in(torch.float32, model, optimizer, ready)
    with tempfile.TemporaryDirectory() as folder:
        save(model, optimizer, folder)
    optimizer.train()
    train_in(torch.float32, model, optimizer, 2)
    optimizer.eval()
    return model


def schedule_free_saved_in_eval_mode():
    def save(model, optimizer, folder):
        optimizer.eval()
        torch.save(model.state_dict(), Path(folder, "m.pt"))

    return schedule_free(save)


def schedule_free_checkpoint():
    def save(model, optimizer, folder):
        torch.save({"model": model.state_dict(), "optimizers": [optimizer.state_dict()]}, Path(folder, "all.pt"))

    return schedule_free(save)


def schedule_free_checkpoint_in_two_files():
    def save(model, optimizer, folder):
        torch.save(model.state_dict(), Path(folder, "m.pt"))
        torch.save(optimizer.state_dict(), Path(folder, "o.pt"))

    return schedule_free(save)


def schedule_free_saved_before_it_is_trained():
    return schedule_free(lambda model, _, folder: torch.save(model.state_dict(), Path(folder, "m.pt")), ready=0)


def schedule_free_beside_another_model():
    return schedule_free(lambda _, __, folder: torch.save(plain_network().state_dict(), Path(folder, "other.pt")))


def resumed_by(epochs, shuffle=True, set_first=True, position=16):
    model, sampler = plain_network(), Positioned(shuffle)
    optimizer = adapt(model)
    sampler.load_state_dict({"position": position})
    for epoch in epochs:
        if set_first or epoch > epochs[0]:
            sampler.set_epoch(epoch)
        train_by(sampler, model, optimizer)
    return model


def sampler_resumed_in_its_epoch():
    return resumed_by([4, 5])


def sampler_resumed_in_the_first_epoch():
    return resumed_by([0, 1], set_first=False)


def sampler_resumed_at_the_beginning():
    return resumed_by([0, 4], set_first=False, position=0)


def sampler_with_a_seed_in_its_state():
    model, sampler = plain_network(), Positioned()
    optimizer = adapt(model)
    sampler.load_state_dict({"position": 0, "seed": 1234, "cycle": 3})
    for epoch in (0, 4):
        if epoch:
            sampler.set_epoch(epoch)
        train_by(sampler, model, optimizer)
    return model


def sampler_resumed_in_order():
    return resumed_by([4, 5], shuffle=False, set_first=False)


def sampler_resumed_in_the_same_epoch():
    model, sampler = plain_network(), Positioned()
    optimizer = adapt(model)
    train_by(sampler, model, optimizer, most=2)
    state, sampler = sampler.state_dict(), Positioned()
    sampler.load_state_dict(state)
    train_by(sampler, model, optimizer)
    return model


if __name__ == "__main__":
    main(globals())
