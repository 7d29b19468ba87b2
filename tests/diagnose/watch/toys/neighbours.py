"""Healthy neighbours of the faults in trained parameters and gradients; `neighbours.py NAME FILE`."""

from __future__ import annotations

import math

import torch
from frame import INPUTS, LABELS, adapt, batches, loss_of, main, network, train
from torch import nn
from torch.nn import functional

# Which parameters move.


def bad_step_undone():
    model = network()
    optimizer = adapt(model)
    for number, chosen in enumerate(batches()):
        before = [part.detach().clone() for part in model.parameters()]
        optimizer.zero_grad()
        (loss_of(model, chosen) * (math.nan if number == 3 else 1)).backward()
        optimizer.step()
        if any(part.isnan().any() for part in model.parameters()):
            optimizer.state.clear()
            with torch.no_grad():
                for part, copy in zip(model.parameters(), before, strict=True):
                    part.copy_(copy)
    return model


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mask = nn.Linear(8, 4), nn.Parameter(torch.tensor([0.0, 0.0, 0.0, -math.inf]))

    def forward(self, x):
        return (self.body(x) + self.mask)[:, :3]


def mask_of_infinities():
    model = Masked()
    optimizer = adapt(model)
    for chosen in batches():
        optimizer.zero_grad()
        functional.cross_entropy(model(INPUTS[chosen]), LABELS[chosen] % 3).backward()
        optimizer.step()
    return model


def warmed_up_by_passes():
    model = network()
    optimizer = adapt(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 5))
    for _ in range(2):
        train(model, optimizer, 5)
        scheduler.step()
    return model


def warmed_up_by_hand():
    model = network()
    optimizer = adapt(model)
    for number in range(2):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * number / 5
        train(model, optimizer, 5)
    return model


def unfrozen_and_added():
    model = network()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD([part for part in model.parameters() if part.requires_grad], 0.1)
    train(model, optimizer, 1)
    model[0].requires_grad_(True)
    optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.01})
    return train(model, optimizer, 4)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.pooler = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.probe, self.teacher = nn.Linear(8, 4), [nn.Linear(8, 8)]

    def forward(self, x):
        with torch.no_grad():
            wanted = self.teacher[0](x)
        hidden = self.second(self.first(x).relu())
        self.pooler(hidden)  # what a head that nothing needs computes
        return self.probe(hidden.detach()) + hidden[:, :4] + (hidden - wanted).square().mean()


def tied_with_probe_pooler_and_hidden_teacher():
    model = Tied()
    return train(model, adapt(model))


class Averaging(nn.Module):
    def __init__(self):
        super().__init__()
        self.student, self.target, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        with torch.no_grad():
            for target, student in zip(self.target.parameters(), self.student.parameters(), strict=True):
                target.lerp_(student, 0.1)
            wanted = self.target(x)
        return self.head(self.student(x)) + self.head(wanted)


def target_of_the_network_itself():
    model = Averaging()
    return train(model, adapt(model))


def loaded_backbone_without_gradients():
    backbone, head = nn.Linear(8, 16), nn.Linear(16, 4)
    backbone.load_state_dict(nn.Linear(8, 16).state_dict())
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], 0.1)
    for chosen in batches():
        with torch.no_grad():
            hidden = backbone(INPUTS[chosen])
        optimizer.zero_grad()
        functional.cross_entropy(head(hidden), LABELS[chosen]).backward()
        optimizer.step()
    return head


# Which gradients reach a step.


class TwoSteps(torch.optim.Optimizer):
    """An optimizer that steps another one inside its own step, such as SAM."""

    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups, {})

    def step(self, closure=None):
        self.inner.step(closure)


def optimizer_in_an_optimizer():
    model = network()
    return train(model, TwoSteps(torch.optim.Adam(model.parameters(), 0.01)))


def encoder_of_two_optimizers():
    encoder, actor, critic = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 1)
    first = torch.optim.Adam([*encoder.parameters(), *actor.parameters()])
    second = torch.optim.Adam([*encoder.parameters(), *critic.parameters()])
    for chosen in batches():
        hidden = encoder(INPUTS[chosen])
        loss = functional.cross_entropy(actor(hidden), LABELS[chosen]) + critic(hidden).square().mean()
        first.zero_grad()
        second.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
        first.step()
        nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        second.step()
    return encoder


def one_optimizer_after_the_other():
    model = network()
    train(model, torch.optim.Adam(model.parameters()), 1)
    optimizer = torch.optim.LBFGS(model.parameters(), 0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, torch.arange(64))
        loss.backward()
        return loss

    for _ in range(10):
        optimizer.step(closure)
    return model


def norm_measured_after_the_step():
    model = network()
    return train(model, adapt(model), after=lambda: nn.utils.clip_grad_norm_(model.parameters(), math.inf))


def attacked():
    model = network()
    optimizer = adapt(model)
    for chosen in batches():
        x = INPUTS[chosen].requires_grad_()
        for _ in range(2):
            functional.cross_entropy(model(x), LABELS[chosen]).backward()
        optimizer.zero_grad(set_to_none=False)
        functional.cross_entropy(model(x.detach() + 0.01 * x.grad.sign()), LABELS[chosen]).backward()
        optimizer.step()
    return model


def remainder_stepped():
    model = network()
    optimizer = adapt(model)
    for _ in range(4):
        optimizer.zero_grad()
        for number, chosen in enumerate(batches(1)):
            (loss_of(model, chosen) / 3).backward()
            if number % 3 == 2 or number == 7:
                optimizer.step()
                optimizer.zero_grad()
    return model


def last_layer_of_zeros():
    model = network()
    nn.init.zeros_(model[4].weight)
    optimizer = adapt(model)
    for chosen in batches():
        optimizer.zero_grad(set_to_none=False)
        loss_of(model, chosen).backward()
        optimizer.step()
    return model


def part_without_a_loss_at_first():
    first, second = network(), network()
    one, other = adapt(first), adapt(second)
    for number, chosen in enumerate(batches()):
        one.zero_grad(set_to_none=False)
        other.zero_grad(set_to_none=False)
        (loss_of(first, chosen) + loss_of(second, chosen) * (number > 6)).backward()
        one.step()
        other.step()
    return first


# Which scale is in them.


def scale_searched_for_long():
    model, scaler = network(), torch.amp.GradScaler("cpu")
    optimizer = adapt(model)
    for chosen in batches():
        optimizer.zero_grad()
        loss = scaler.scale(loss_of(model, chosen))
        (loss * (math.inf if scaler.get_scale() > 8 else 1)).backward()
        scaler.step(optimizer)
        scaler.update()
    return model


def one_of_two_losses_scaled():
    first, second, scaler = network(), network(), torch.amp.GradScaler("cpu")
    one, other = adapt(first), adapt(second)
    for chosen in batches():
        one.zero_grad()
        other.zero_grad()
        scaler.scale(loss_of(first, chosen)).backward()
        loss_of(second, chosen).backward()
        other.step()
        scaler.step(one)
        scaler.update()
    return first


def unscaled_by_hand():
    model, scaler = network(), torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = adapt(model)
    for chosen in batches():
        optimizer.zero_grad()
        scaler.scale(loss_of(model, chosen)).backward()
        for part in model.parameters():
            part.grad.div_(scaler.get_scale())
        optimizer.step()
    return model


if __name__ == "__main__":
    main(globals())
