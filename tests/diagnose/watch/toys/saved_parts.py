"""What the trainings of `faults_saved.py` and `neighbours_saved.py` share: an optimizer with a mode, and a sampler."""

from __future__ import annotations

import itertools

import torch
from frame import INPUTS, LABELS
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def plain_network():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def train_in(dtype, model, optimizer, steps=32, after=None):
    for _ in range(steps):
        optimizer.zero_grad()
        functional.cross_entropy(model(INPUTS.to(dtype)).float(), LABELS).backward()
        optimizer.step()
        if after is not None:
            after()
    return model


class ScheduleFree(torch.optim.Optimizer):
    """Schedule-free SGD: takes gradients between the average of all points and the last one, which it returns."""

    def __init__(self, params, lr=0.5, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta, "count": 0, "train_mode": False})

    def _switch(self, mode):
        for group in self.param_groups:
            if group["train_mode"] != mode:
                for weight in group["params"]:
                    if "last" in self.state[weight]:
                        share = 1 - group["beta"] if mode else 1 - 1 / group["beta"]
                        weight.data.lerp_(self.state[weight]["last"], share)
                group["train_mode"] = mode

    def train(self):
        self._switch(True)

    def eval(self):
        self._switch(False)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            assert group["train_mode"]
            group["count"] += 1
            for weight in group["params"]:
                last = self.state[weight].setdefault("last", weight.detach().clone())
                average = weight.lerp(last, 1 - 1 / group["beta"])
                last.sub_(weight.grad, alpha=group["lr"])
                average.lerp_(last, 1 / group["count"])
                weight.copy_(average.lerp(last, 1 - group["beta"]))


class Positioned(DistributedSampler):
    """A sampler that keeps its position in a pass."""

    def __init__(self, shuffle=True):
        super().__init__(range(64), num_replicas=2, rank=0, shuffle=shuffle)
        self.position = self.begin = 0

    def __iter__(self):
        self.position, self.begin = self.begin, 0
        for index in itertools.islice(super().__iter__(), self.position, None):
            self.position += 1
            yield index

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.begin = state["position"]


def train_by(sampler, model, optimizer, most=4):
    data = DataLoader(TensorDataset(INPUTS, LABELS), batch_size=8, sampler=sampler)
    for x, y in itertools.islice(data, most):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
