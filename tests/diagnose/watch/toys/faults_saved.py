"""Small trainings with a silent fault in averages, checkpoints and resumes; `faults_saved.py NAME FILE`."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import torch
from frame import adapt, main
from saved_parts import Positioned, ScheduleFree, plain_network, train_by, train_in
from torch.optim.swa_utils import AveragedModel


def average_in_bfloat16():
    model = plain_network().bfloat16()
    average = AveragedModel(model, avg_fn=lambda mean, value, _: mean + (value - mean) * 1e-4)
    return train_in(torch.bfloat16, model, adapt(model), after=lambda: average.update_parameters(model))


def average_by_hand_in_bfloat16():
    model = plain_network().bfloat16()
    average = copy.deepcopy(model).eval()

    def update():
        with torch.no_grad():
            for mean, value in zip(average.parameters(), model.parameters(), strict=True):
                mean.mul_(0.9999).add_(value, alpha=0.0001)

    return train_in(torch.bfloat16, model, adapt(model), after=update)


def in_groups(model, *options):
    parts = [model[0], model[2]] if len(options) > 1 else [model]
    groups = zip(parts, options, strict=True)
    return torch.optim.AdamW([{"params": part.parameters(), **given} for part, given in groups])


def groups_joined():
    from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict

    model = plain_network()
    optimizer = in_groups(model, {"lr": 0.01, "weight_decay": 0.0}, {"lr": 0.001, "weight_decay": 0.1})
    train_in(torch.float32, model, optimizer, 2)
    state = get_optimizer_state_dict(model, optimizer)
    optimizer.zero_grad()
    optimizer = in_groups(model, {"lr": 0.01})
    set_optimizer_state_dict(model, optimizer, optim_state_dict=state)
    return train_in(torch.float32, model, optimizer, 2)


def loaded_while_frozen():
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model = plain_network()
    optimizer = in_groups(model, {"lr": 0.01})
    train_in(torch.float32, model, optimizer, 2)
    weights, state = get_state_dict(model, optimizer)
    optimizer.zero_grad()
    model[0].requires_grad_(False)
    optimizer = in_groups(model, {"lr": 0.01})
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    model[0].requires_grad_(True)
    return train_in(torch.float32, model, optimizer, 2)


def loaded_flat_beside_gradients():
    from torch.distributed.checkpoint import state_dict

    model, options = plain_network(), state_dict.StateDictOptions(flatten_optimizer_state_dict=True)
    optimizer = in_groups(model, {"lr": 0.01})
    train_in(torch.float32, model, optimizer, 2)
    state = state_dict.get_optimizer_state_dict(model, optimizer, options=options)
    optimizer = in_groups(model, {"lr": 0.01})
    state_dict.set_optimizer_state_dict(model, optimizer, optim_state_dict=state, options=options)
    return train_in(torch.float32, model, optimizer, 2)


def schedule_free_saved_in_train_mode():
    model = plain_network()
    optimizer = ScheduleFree(model.parameters())
    optimizer.train()
    train_in(torch.float32, model, optimizer, 8)
    with tempfile.TemporaryDirectory() as folder:
        torch.save({"model": {name: value.clone() for name, value in model.state_dict().items()}}, Path(folder, "m.pt"))
    optimizer.eval()
    return model


def sampler_resumed_in_the_first_order():
    model, sampler = plain_network(), Positioned()
    optimizer = adapt(model)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        train_by(sampler, model, optimizer, most=2 if epoch else 4)
    state, sampler = sampler.state_dict(), Positioned()
    sampler.load_state_dict(state)
    train_by(sampler, model, optimizer)
    return model


def sampler_resumed_from_a_file():
    model, sampler = plain_network(), Positioned()
    optimizer = adapt(model)
    sampler.load_state_dict({"position": 16})
    for epoch in (4, 5):
        if epoch > 4:
            sampler.set_epoch(epoch)
        train_by(sampler, model, optimizer)
    return model


if __name__ == "__main__":
    main(globals())
